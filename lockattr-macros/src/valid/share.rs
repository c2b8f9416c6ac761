//! What does not fit a function whose result is shared.

use proc_macro2::Span;
use syn::Error;

use super::refuse_beside;
use crate::args::Args;
use crate::locked_fn::Body;
use crate::mistakes::Mistakes;

pub(super) fn check(args: &Args, mistakes: &mut Mistakes) {
    if !args.shares_result() {
        return;
    }
    let refused = [
        (args.keys.is_some(), "keys", "the result is that of one `key`"),
        (args.mode == Some("shared"), "mode", "one caller runs the body"),
        (args.permits.is_some(), "permits", "one caller runs the body"),
        (
            args.once_per.is_some(),
            "once_per",
            "callers that come later find the key done, without a result",
        ),
        (
            args.once_for.is_some(),
            "once_for",
            "callers that come later find the key done, without a result",
        ),
        (args.leads(), "lead", "a leader has no callers that wait for its result"),
        (
            args.on_unavailable == Some("run_unlocked"),
            "on_unavailable",
            "without the store, each caller runs the body",
        ),
    ];
    refuse_beside("share_result", &refused, args, mistakes);
}

/// Only an `async fn` waits for others without blocking a thread for each.
pub(crate) fn check_function(args: &Args, body: &Body, mistakes: &mut Mistakes) {
    if args.shares_result() && !matches!(body, Body::Async(_) | Body::Future { .. }) {
        let at = args.span_of("share_result").unwrap_or_else(Span::call_site);
        let sentence = "`share_result` needs an `async fn`, whose callers can wait for one result: write one, and \
                        call it from this function";
        mistakes.push(Error::new(at, sentence));
    }
}
