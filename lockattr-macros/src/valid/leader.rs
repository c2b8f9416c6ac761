//! What does not fit a function that leads.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Error, FnArg, ReceiverKind};

use crate::args::Args;
use crate::locked_fn::{Body, LockedFn};
use crate::mistakes::Mistakes;
use crate::params::Params;

/// The options that a leader has no use for, and why.
const REFUSED: [(&str, &str); 11] = [
    ("keys", "a leader has one `key`"),
    ("wait", "a campaign has no end"),
    ("retry", "a campaign has no end"),
    ("retry_delay", "a follower is notified, and asks seldom"),
    ("hold_at_least", "a term ends when its body ends"),
    ("on_busy", "a campaign has no end, so it is never refused"),
    ("on_lost", "the body of a term is dropped when the term is lost"),
    ("on_unavailable", "a campaign waits until the store is back"),
    ("mode", "there is one leader"),
    ("permits", "there is one leader"),
    (
        "when",
        "a function that sometimes leads is two functions: write a second one without the attribute",
    ),
];

/// The reason against a function that runs once and leads.
const ONCE: &str = "a leader leads again after each term, and a job that runs once does not: leave out one of \
                    them";

pub(super) fn check(args: &Args, params: Option<&Params>, mistakes: &mut Mistakes) {
    if args.leads() {
        for (option, why) in REFUSED {
            if let Some(at) = args.span_of(option) {
                let sentence = format!("`{option}` is not for leaders: {why}; leave it out");
                mistakes.push(Error::new(at, sentence));
            }
        }
        for option in ["once_per", "once_for"] {
            if let Some(at) = args.span_of(option) {
                mistakes.push(Error::new(at, ONCE));
            }
        }
        if let Some(at) = args.span_of("reentrant") {
            let sentence =
                "`reentrant` is not for leaders: a campaign is never a nested call; leave it out";
            mistakes.push(Error::new(at, sentence));
        }
        if let Some(at) = args.span_of("lease") {
            let sentence = "a leader's lease is its term: write `term = term` instead of `lease`";
            mistakes.push(Error::new(at, sentence));
        }
    }
    let Some(term) = &args.term else { return };
    if !args.leads() && params.is_some() {
        let sentence = "`term` is the name of a leader's term: add `lead = true`, or name the lease of \
                        another lock as in `lease = lease`";
        mistakes.push(Error::new(term.span(), sentence));
    }
    if params.is_some_and(|params| params.has(&term.unraw().to_string())) {
        let sentence = format!(
            "`term = {term}` would hide the parameter `{term}` in the body: write another name"
        );
        mistakes.push(Error::new(term.span(), sentence));
    }
}

/// Checks that the function can run once for each term.
pub(crate) fn check_function(
    args: &Args,
    function: &LockedFn,
    body: &Body,
    mistakes: &mut Mistakes,
) {
    if !args.leads() {
        return;
    }
    let at = args.span_of("lead").unwrap_or_else(Span::call_site);
    if !matches!(body, Body::Async(_)) {
        let sentence = "`lead` needs an `async fn`, whose body runs once for each term: write one, and call it \
                        from this function";
        mistakes.push(Error::new(at, sentence));
    }
    if let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first()
        && !matches!(receiver.kind, ReceiverKind::Reference(_, _, None))
    {
        let sentence = "the body of a leader runs once for each term, and cannot move `self` into each: write \
                        `&self`";
        mistakes.push(Error::new_spanned(receiver, sentence));
    }
}
