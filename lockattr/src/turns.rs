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
/// comes after them. With several threads a task that was woken by another one is next on the same
/// thread, and a task that is woken elsewhere is taken by a thread that has nothing to do; so this also
/// waits for two tasks, one after the other, which is no proof where all threads are busy.
pub(crate) async fn others_had_their_turn() {
    let Ok(runtime) = Handle::try_current() else { return };
    let rounds = if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread { 1 } else { 2 };
    for _ in 0..rounds {
        yield_now().await;
        // An error says that the runtime ends.
        runtime.spawn(yield_now()).await.ok();
    }
}
