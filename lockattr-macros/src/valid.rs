//! Invalid combinations of options that are valid individually.
//!
//! The runtime refuses the same combinations as `InvalidOptions`; here they are refused if the
//! values are literals.

pub(crate) mod leader;
pub(crate) mod once;
pub(crate) mod share;

use std::time::Duration;

use humantime::format_duration;
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Error, Expr, Ident, Lit};

use crate::args::Args;
use crate::duration::Time;
use crate::mistakes::Mistakes;
use crate::params::Params;
use crate::value::{Constant, constant};

const SHORTEST_TTL: Duration = Duration::from_millis(10);
const LONGEST_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Checks the options against each other, and against the function's parameters if it has any.
pub(crate) fn check(args: &Args, params: Option<&Params>, mistakes: &mut Mistakes) {
    for key in args.key.iter().chain(args.keys.iter().flatten()).chain(&args.once_for) {
        key.check(params, mistakes);
    }
    check_pairs(args, mistakes);
    check_permits(args.permits.as_ref(), mistakes);
    check_times(args, mistakes);
    check_hold_at_least(args, mistakes);
    leader::check(args, params, mistakes);
    once::check(args, mistakes);
    share::check(args, mistakes);
    if let Some(lease) = &args.lease {
        check_lease(lease, args, params, mistakes);
    }
}

/// Checks the options against the kind of function that they are on.
pub(crate) fn check_plain(args: &Args, mistakes: &mut Mistakes) {
    if args.on_lost == Some("cancel")
        && let Some(at) = args.span_of("on_lost")
    {
        let sentence = "`on_lost = cancel` cannot stop a plain function, which runs on the calling \
                        thread: write `on_lost = error` (the default there) or `on_lost = ignore`, and \
                        ask `lockattr::current()` in the body, or make it an `async fn`";
        mistakes.push(Error::new(at, sentence));
    }
}

/// Pairs of options that exclude each other, whatever their values; reported at the later one.
fn check_pairs(args: &Args, mistakes: &mut Mistakes) {
    let pairs = [
        (
            "key",
            "keys",
            "`key` and `keys` both say what to lock: leave one of them out, and name several keys \
             as in `keys = [\"account:<from>\", \"account:<to>\"]`",
        ),
        (
            "mode",
            "permits",
            "`mode` and `permits` cannot stand together: leave `permits` out for a read/write \
             lock, or `mode` for a semaphore",
        ),
    ];
    for (one, other, sentence) in pairs {
        if let Some(at) = args.later_of(one, other) {
            mistakes.push(Error::new(at, sentence));
        }
    }
}

/// Refuses options that cannot be combined with `other`, each for its reason.
fn refuse_beside(
    other: &str,
    refused: &[(bool, &'static str, &str)],
    args: &Args,
    mistakes: &mut Mistakes,
) {
    for (is_set, option, why) in refused {
        if *is_set && let Some(at) = args.span_of(option) {
            let sentence =
                format!("`{option}` cannot be combined with `{other}`: {why}; leave it out");
            mistakes.push(Error::new(at, sentence));
        }
    }
}

fn check_permits(permits: Option<&Expr>, mistakes: &mut Mistakes) {
    if let Some(Constant::Positive(Lit::Int(number))) = permits.map(constant)
        && number.base10_digits() == "0"
    {
        let sentence = "`permits` is 0, so the lock could never be held: write \
                        `permits = 1` or more";
        mistakes.push(Error::new(number.span(), sentence));
    }
}

fn check_hold_at_least(args: &Args, mistakes: &mut Mistakes) {
    let Some((least, at)) = known(args.hold_at_least.as_ref()) else {
        return;
    };
    let fixed = matches!(
        args.renew.as_ref().map(constant),
        Some(Constant::Positive(Lit::Bool(renew))) if !renew.value
    );
    if let Some((ttl, _)) = known(args.ttl.as_ref())
        && fixed
        && least > ttl
    {
        let (least, ttl) = (format_duration(least), format_duration(ttl));
        let sentence = format!(
            "`hold_at_least` ({least}) is longer than `ttl` ({ttl}), which ends the lease without \
             `renew`: write `ttl = \"{least}\"`, or leave `renew` out"
        );
        mistakes.push(Error::new(at, sentence));
    }
    if let Some((max_hold, _)) = known(args.max_hold.as_ref())
        && least > max_hold
    {
        let sentence = format!(
            "`hold_at_least` ({}) is longer than `max_hold` ({}): shorten it, or lengthen \
             `max_hold`",
            format_duration(least),
            format_duration(max_hold)
        );
        mistakes.push(Error::new(at, sentence));
    }
}

fn known(time: Option<&Time>) -> Option<(Duration, Span)> {
    time.and_then(Time::known)
}

fn check_times(args: &Args, mistakes: &mut Mistakes) {
    if let Some((ttl, at)) = known(args.ttl.as_ref()) {
        if ttl < SHORTEST_TTL {
            let sentence = format!(
                "`ttl` is {}, too short to renew: write `\"10ms\"` or more",
                format_duration(ttl)
            );
            mistakes.push(Error::new(at, sentence));
        }
        if ttl > LONGEST_TTL {
            let sentence = "`ttl` is longer than 30 days, and nobody waits that long for a crashed \
                            holder: write `\"30days\"` or less; the lease is renewed while the body \
                            runs";
            mistakes.push(Error::new(at, sentence));
        }
        if let Some((max_hold, at)) = known(args.max_hold.as_ref())
            && max_hold < ttl
        {
            let sentence = format!(
                "`max_hold` ({}) is shorter than `ttl` ({}): shorten `ttl` too",
                format_duration(max_hold),
                format_duration(ttl)
            );
            mistakes.push(Error::new(at, sentence));
        }
    }
    if let Some((Duration::ZERO, at)) = known(args.wait.as_ref())
        && args.retry.is_some()
    {
        let sentence = "`wait` is zero, so `retry` would never retry: leave one of them out";
        mistakes.push(Error::new(at, sentence));
    }
    if let Some((Duration::ZERO, at)) = known(args.retry_delay.as_ref()) {
        let sentence = "`retry_delay` is zero, which would ask the store without a pause: write \
                        `\"1ms\"` or more";
        mistakes.push(Error::new(at, sentence));
    }
}

fn check_lease(lease: &Ident, args: &Args, params: Option<&Params>, mistakes: &mut Mistakes) {
    if params.is_some_and(|params| params.has(&lease.unraw().to_string())) {
        let sentence = format!(
            "`lease = {lease}` would hide the parameter `{lease}` in the body: write another name"
        );
        mistakes.push(Error::new(lease.span(), sentence));
    }
    let without_lock = [
        (args.when.is_some(), "when"),
        (args.on_unavailable == Some("run_unlocked"), "on_unavailable = run_unlocked"),
    ];
    for (there, option) in without_lock {
        if there {
            let sentence = format!(
                "`lease` cannot stand beside `{option}`, where the body may run without a lock: \
                 leave `lease` out and ask `lockattr::current()` in the body"
            );
            mistakes.push(Error::new(lease.span(), sentence));
        }
    }
}
