//! Promise 1, in one place: no body begins without its lease.

use tokio::time::Instant;
use tracing::{Span, span};

use crate::Error;
use crate::hold::chain::Frame;

/// Enters a body: asks the clock, as the last thing before the body's first line.
///
/// **The body never runs without the lock.** A grant is no proof of that: the lease runs from before
/// the request was sent, and a task that was granted a lock may be polled late (a busy worker, a slow
/// subscriber of events, a stopped process). So every body begins by this call, whatever `on_lost`
/// says: an annotated `async fn` and `with_lock` (`body.rs`), an annotated plain function and
/// `with_lock_blocking` (`body/blocking.rs`), an annotated stream, where it is made and where it is
/// first polled (`body/stream.rs`), the scope of a guard (`body/scope.rs`), and the code of a caller that
/// is given a guard (`body/granted.rs`). A nested call has the frame of its own entry, which asks about
/// the hold around it as well.
///
/// On `Err` the body has not begun. Its caller acquires the lock again within the call's wait budget
/// (`body/granted.rs`), or returns the error.
pub(crate) fn enter<'a>(frame: &Frame, span: Option<&'a Span>) -> Result<Entered<'a>, Error> {
    // First the span, whose subscriber belongs to the program and may take any time.
    let entered = go_on(span);
    let now = Instant::now();
    frame.ensure_held(now)?;
    frame.begins(now);
    Ok(entered)
}

/// Goes on with a body that has begun.
pub(crate) fn go_on(span: Option<&Span>) -> Entered<'_> {
    Entered { _span: span.map(Span::enter) }
}

/// The code that runs is the body's, inside the span of its hold.
#[must_use]
pub(crate) struct Entered<'a> {
    _span: Option<span::Entered<'a>>,
}
