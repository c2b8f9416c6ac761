//! What does not fit a function that runs once in a period.

use std::time::Duration;

use humantime::format_duration;
use proc_macro2::Span;
use syn::Error;

use super::{known, refuse_beside};
use crate::args::Args;
use crate::locked_fn::Body;
use crate::mistakes::Mistakes;

const LONGEST_PERIOD: Duration = Duration::from_secs(366 * 24 * 60 * 60);

pub(super) fn check(args: &Args, mistakes: &mut Mistakes) {
    if !args.runs_once() {
        return;
    }
    let refused = [
        (args.keys.is_some(), "keys", "one `key` is done"),
        (args.mode == Some("shared"), "mode", "one caller runs the body"),
        (args.permits.is_some(), "permits", "one caller runs the body"),
        (
            args.release == Some("background"),
            "release",
            "the caller has to learn whether the key is done",
        ),
        (
            args.on_lost == Some("ignore"),
            "on_lost",
            "a body that lost its lease may run a second time",
        ),
        (
            args.on_unavailable == Some("run_unlocked"),
            "on_unavailable",
            "a body without the lock may run a second time",
        ),
    ];
    refuse_beside("once_per", &refused, args, mistakes);
    let Some((period, at)) = known(args.once_per.as_ref()) else { return };
    if period.is_zero() {
        let sentence =
            "`once_per` is zero: write how long the key is done, as in `once_per = \"22h\"`";
        mistakes.push(Error::new(at, sentence));
    }
    if period > LONGEST_PERIOD {
        let sentence = format!(
            "`once_per` is {}, and at most 366 days are allowed: shorten it",
            format_duration(period)
        );
        mistakes.push(Error::new(at, sentence));
    }
}

/// A stream has no end that says `Ok`.
pub(crate) fn check_function(args: &Args, body: &Body, mistakes: &mut Mistakes) {
    if args.runs_once() && matches!(body, Body::Stream { .. }) {
        let at = args.span_of("once_per").or_else(|| args.span_of("once_for"));
        let sentence = "a stream does not say whether its work is done: `once_per` needs a function that \
                        returns a `Result`";
        mistakes.push(Error::new(at.unwrap_or_else(Span::call_site), sentence));
    }
}
