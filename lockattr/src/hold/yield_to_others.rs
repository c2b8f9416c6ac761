//! Lets the tasks run that were woken before, among them a client's own task that writes commands
//! to its connection.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::yield_now;

/// Returns when the tasks that this one has woken had a chance to run, as far as tokio allows to
/// know.
///
/// A client with one connection for many callers writes in its own task, which is only woken
/// when it receives a command. A caller that computes next, or ends the process, would keep that
/// task from running.
///
/// A runtime of one thread runs its tasks in the order in which they are woken: one that is spawned
/// now runs after them. With several threads, the task woken last runs next on the same thread, so
/// one yield is enough. It is no proof: a task woken elsewhere runs when an idle thread takes it.
pub(crate) async fn yield_to_others() {
    let Ok(runtime) = Handle::try_current() else { return };
    match runtime.runtime_flavor() {
        // An error means that the runtime ends.
        RuntimeFlavor::CurrentThread => runtime.spawn(async {}).await.unwrap_or_default(),
        _ => yield_now().await,
    }
}
