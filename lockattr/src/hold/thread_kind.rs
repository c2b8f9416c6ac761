//! Whether this thread may block.

use std::pin::pin;
use std::task::{Context, Waker};

use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;

use crate::Error;

/// More than any task may do before tokio makes it yield.
const MORE_THAN_ANY_BUDGET: u32 = 256;

/// Refuses to block a thread on which other tasks would wait too, perhaps the one that holds the
/// lock.
pub(crate) fn may_wait(key: &str) -> Result<(), Error> {
    if !polls_a_task() {
        return Ok(());
    }
    let about = if key.is_empty() { String::new() } else { format!("`{key}`: ") };
    Err(Error::InvalidOptions(format!(
        "{about}waiting here would block a thread that runs async tasks: make the annotated \
         function an `async fn` (or call `acquire` instead of `acquire_blocking`, and so on), or \
         call it in `tokio::task::spawn_blocking`"
    )))
}

/// Whether tokio polls a task or future on this thread now.
///
/// Tokio has no function for that; it panics when a thread that it needs is blocked. But what it
/// polls has a budget, and code in `spawn_blocking`, in `block_in_place` or outside a runtime has
/// none. If the answer is yes, this check uses up the task's budget. (A future in tokio's
/// `unconstrained` has no budget: it would block, and get `Contended` in the end.)
fn polls_a_task() -> bool {
    if Handle::try_current().is_err() {
        return false;
    }
    let mut context = Context::from_waker(Waker::noop());
    (0..MORE_THAN_ANY_BUDGET).any(|_| pin!(consume_budget()).poll(&mut context).is_pending())
}
