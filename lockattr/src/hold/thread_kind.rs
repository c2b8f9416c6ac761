//! Whether this thread may wait.

use std::pin::pin;
use std::task::{Context, Waker};

use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;

use crate::Error;

/// More than any task may do before tokio makes it yield.
const MORE_THAN_ANY_BUDGET: u32 = 256;

/// Refuses to wait where other tasks would wait too, perhaps those that the lock is waited for.
pub(crate) fn may_wait(key: &str) -> Result<(), Error> {
    if !polls_a_task() {
        return Ok(());
    }
    let about = if key.is_empty() { String::new() } else { format!("`{key}`: ") };
    Err(Error::InvalidOptions(format!(
        "{about}to wait here would stop a thread that runs async tasks: make the annotated function an \
         `async fn` (or call `acquire` in place of `acquire_blocking`, and its like), or call it in \
         `tokio::task::spawn_blocking`"
    )))
}

/// Whether tokio polls something on this thread just now.
///
/// It has no question for that, and panics where one blocks a thread that it needs. But what it polls
/// has a budget, and what runs in `spawn_blocking`, in `block_in_place` or beside a runtime has none. The
/// answer "yes" costs the task its next turn. (A future in tokio's `unconstrained` has no budget: it
/// would wait, and be told `Contended` in the end.)
fn polls_a_task() -> bool {
    if Handle::try_current().is_err() {
        return false;
    }
    let mut context = Context::from_waker(Waker::noop());
    (0..MORE_THAN_ANY_BUDGET).any(|_| pin!(consume_budget()).poll(&mut context).is_pending())
}
