//! Letting the tasks run that were woken before: among them a client's own task, which writes to its
//! connection what it was handed.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::yield_now;

/// Returns when the tasks that this one has woken had their turn, as far as tokio lets it know.
///
/// A client with one connection for many callers writes in a task of its own, which is only woken when
/// it is handed a command. A caller that computes next, or ends the process, would keep that task from
/// its turn.
///
/// A runtime of one thread runs its tasks in the order in which they are woken: one that is spawned now
/// comes after them. With several threads, what a task has woken last is next on the task's own thread, so
/// it is enough to give way; it is no proof, because what was woken elsewhere is taken by a thread that has
/// nothing to do.
pub(crate) async fn yield_to_others() {
    let Ok(runtime) = Handle::try_current() else { return };
    match runtime.runtime_flavor() {
        // An error says that the runtime ends.
        RuntimeFlavor::CurrentThread => runtime.spawn(async {}).await.unwrap_or_default(),
        _ => yield_now().await,
    }
}
