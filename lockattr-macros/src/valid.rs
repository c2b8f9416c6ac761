//! What the attribute must not say, though each option by itself can be read.
//!
//! The runtime refuses the same combinations as `InvalidOptions`; here they are refused where the
//! values are literals.

use std::time::Duration;

use humantime::format_duration;
use syn::ext::IdentExt;
use syn::{Error, Ident};

use crate::args::Args;
use crate::duration::Time;
use crate::mistakes::Mistakes;
use crate::params::Params;

const SHORTEST_TTL: Duration = Duration::from_millis(10);
const LONGEST_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Checks the options among themselves, and beside the function's parameters if it has any.
pub(crate) fn check(args: &Args, params: Option<&Params>, mistakes: &mut Mistakes) {
    if let Some(key) = &args.key {
        key.check(params, mistakes);
    }
    check_times(args, mistakes);
    if let Some(lease) = &args.lease {
        check_lease(lease, args, params, mistakes);
    }
}

fn check_times(args: &Args, mistakes: &mut Mistakes) {
    let known = |time: &Option<Time>| time.as_ref().and_then(Time::known);
    if let Some((ttl, at)) = known(&args.ttl) {
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
        if let Some((max_hold, at)) = known(&args.max_hold)
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
    if let Some((Duration::ZERO, at)) = known(&args.wait)
        && args.retry.is_some()
    {
        let sentence = "`wait` is zero, so `retry` would never retry: leave one of them out";
        mistakes.push(Error::new(at, sentence));
    }
    if let Some((Duration::ZERO, at)) = known(&args.retry_delay) {
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
