//! Promise 1, in one place: no body begins without its lease.

use tokio::time::Instant;
use tracing::{Span, span};

use crate::Error;
use crate::hold::chain::Frame;

/// Enters a body: checks the clock, as the last step before the body's first line.
///
/// **The body never runs without the lock.** A grant is no proof of that: the lease counts from
/// before the request was sent, and the granted task may be polled late (a busy worker, a slow
/// event subscriber, a stopped process). So every body begins with this call, whatever `on_lost`
/// says: an annotated `async fn` and `with_lock` (`body.rs`), an annotated plain function and
/// `with_lock_blocking` (`body/blocking.rs`), an annotated stream when it is made and when it is
/// first polled (`body/stream.rs`), the scope of a guard (`hold/scope.rs`), and the code of a
/// caller that receives a guard (`body/granted.rs`). A nested call has its own frame, which
/// also checks the hold around it.
///
/// On `Err` the body has not begun. Its caller acquires the lock again within the call's wait
/// budget (`body/granted.rs`), or returns the error.
pub(crate) fn enter<'a>(frame: &Frame, span: Option<&'a Span>) -> Result<Entered<'a>, Error> {
    // The span first: its subscriber belongs to the program and may take any time.
    let entered = enter_span(span);
    let now = Instant::now();
    frame.ensure_held(now)?;
    frame.record_begin(now);
    Ok(entered)
}

pub(crate) fn enter_span(span: Option<&Span>) -> Entered<'_> {
    Entered { _span: span.map(Span::enter) }
}

/// While this exists, the running code belongs to the body and is inside the span of its hold.
#[must_use]
pub(crate) struct Entered<'a> {
    _span: Option<span::Entered<'a>>,
}
