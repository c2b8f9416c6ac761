//! The manager's own runtime, for blocking callers: one thread. The first blocking call starts it.
//! It ends once its manager is gone and nothing is held or pending any more.
//!
//! The body under the lock runs on the calling thread. Only requests to the store and renewals run
//! here, so they continue however long the body computes.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::{self, Builder, Handle, Runtime};

use super::Watchdog;
use super::queue::Queue;
use crate::Error;
use crate::store::StoreError;

/// How long a drop on such a thread waits for a store that does not answer. Without the wait, the process
/// might end before this thread has released the lock.
const MAX_DROP_DELAY: Duration = Duration::from_secs(1);

/// The thread, if there is one.
#[derive(Default)]
pub(super) struct OwnRuntime(Mutex<Own>);

#[derive(Default)]
struct Own {
    handle: Option<Handle>,
    /// How many threads wait for a result from it.
    waiting: usize,
    /// Whether an earlier wait for pending releases has timed out. Later drops then do not wait.
    timed_out_before: bool,
}

impl OwnRuntime {
    fn own(&self) -> MutexGuard<'_, Own> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self) -> Option<runtime::Id> {
        self.own().handle.as_ref().map(Handle::id)
    }

    /// Nothing is pending any more: drops may wait again.
    pub(super) fn settled(&self) {
        self.own().timed_out_before = false;
    }
}

impl Watchdog {
    /// Runs `future` on the manager's own runtime and blocks this thread until it is done. Propagates its
    /// panic.
    pub(crate) fn block_on<F>(self: &Arc<Self>, key: &str, future: F) -> Result<F::Output, Error>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.check_process()?;
        let handle = self.own_runtime().map_err(|error| error.about(key))?;
        let (sender, receiver) = sync_channel(1);
        handle.spawn(async move {
            let outcome = AssertUnwindSafe(future).catch_unwind().await;
            // The receiver exists until it has the outcome.
            sender.send(outcome).ok();
        });
        let outcome = receiver.recv();
        self.own_runtime.own().waiting -= 1;
        self.settled();
        match outcome {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => {
                Err(StoreError::new("the thread that sends its requests has ended").about(key))
            }
        }
    }

    /// Returns the runtime, which does not end before `waiting` is decremented.
    fn own_runtime(self: &Arc<Self>) -> Result<Handle, StoreError> {
        let mut own = self.own_runtime.own();
        let handle = match &own.handle {
            Some(handle) => handle.clone(),
            None => {
                let handle = self.start_thread().map_err(|error| {
                    StoreError::new("no thread could be started to send the request")
                        .not_sent()
                        .with_source(error)
                })?;
                own.handle.insert(handle).clone()
            }
        };
        own.waiting += 1;
        Ok(handle)
    }

    fn start_thread(self: &Arc<Self>) -> Result<Handle, std::io::Error> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let watchdog = self.clone();
        let thread = thread::Builder::new().name("lockattr".into());
        thread.spawn(move || watchdog.drive_own(&runtime))?;
        Ok(handle)
    }

    /// Runs on the thread. All work is in tasks.
    fn drive_own(&self, runtime: &Runtime) {
        let id = runtime.handle().id();
        runtime.block_on(async {
            loop {
                let unused = |queue: &Queue| {
                    queue.closing && !queue.is_driven_by(id) && self.own_runtime.own().waiting == 0
                };
                self.until(unused).await;
                let mut own = self.own_runtime.own();
                // The next caller starts another thread.
                if own.waiting == 0 {
                    own.handle = None;
                    return;
                }
            }
        });
    }

    /// Waits until pending releases are settled, if this thread has no runtime and only the manager's own
    /// runtime drives the queue.
    pub(super) fn wait_for_own_runtime(&self) {
        let Some(id) = self.own_runtime.id() else { return };
        if Handle::try_current().is_ok() || self.own_runtime.own().timed_out_before {
            return;
        }
        let queue = self.queue();
        if !queue.is_driven_by_only(id) {
            return;
        }
        let has_unsettled =
            |queue: &mut Queue| !queue.releases.all_settled() && queue.is_driven_by(id);
        let waited = self.released.wait_timeout_while(queue, MAX_DROP_DELAY, has_unsettled);
        let (queue, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        self.own_runtime.own().timed_out_before = outcome.timed_out();
        drop(queue);
    }
}
