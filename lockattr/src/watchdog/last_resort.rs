//! Sends the remaining releases when no runtime is left to send them: on a thread that runs as long
//! as there are any.
//!
//! A runtime that ends drops its tasks, the watchdog's among them, and with them the guards that
//! they hold. The drop of such a guard waits for the thread, because the process may be about to
//! end as well. It does not wait for long, because the store may be down.

use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{self, Builder, Handle};
use tokio::time::sleep;

use super::Watchdog;
use super::queue::Queue;
use super::task::Runner;

/// How long a store that does not answer may delay the end of a runtime.
const MAX_DROP_DELAY: Duration = Duration::from_secs(1);

/// The tasks of a runtime are dropped one by one, so the thread waits a little for the next guard.
const IDLE_BEFORE_EXIT: Duration = Duration::from_millis(50);

/// The state of the thread, while it runs.
pub(super) struct LastResort {
    /// The runtime that the thread has created for itself.
    pub(super) runtime: Option<runtime::Id>,
    /// Whether an earlier wait has timed out. Later drops then do not wait.
    pub(super) timed_out_before: bool,
}

impl Watchdog {
    /// Starts the thread for the releases that no task will send, and waits for it for a limited
    /// time.
    pub(super) fn start_last_resort(self: &Arc<Self>) {
        let mut queue = self.queue();
        if !queue.needs_last_resort() {
            return;
        }
        queue.retry_now();
        if queue.last_resort.is_none() {
            let watchdog = self.clone();
            let thread = thread::Builder::new().name("lockattr-release".into());
            if let Err(error) = thread.spawn(move || watchdog.drive()) {
                // Outside the queue's mutex: a subscriber of the event may take a lock.
                drop(queue);
                tracing::error!(
                    error.message = %error,
                    "no thread could be started to release the remaining \
                     locks: they are held until their leases expire");
                return;
            }
            queue.last_resort = Some(LastResort { runtime: None, timed_out_before: false });
        }
        if queue.last_resort.as_ref().is_some_and(|thread| thread.timed_out_before) {
            return;
        }
        let has_unsettled =
            |queue: &mut Queue| !queue.releases.all_settled() && queue.last_resort.is_some();
        let waited = self.released.wait_timeout_while(queue, MAX_DROP_DELAY, has_unsettled);
        let (mut queue, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &mut queue.last_resort {
            thread.timed_out_before = outcome.timed_out();
        }
    }

    fn drive(self: Arc<Self>) {
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!(
                    error.message = %error,
                    "no runtime could be started to release the remaining \
                     locks: they are held until their leases expire");
                self.queue().last_resort = None;
                return self.settled();
            }
        };
        runtime.block_on(async {
            let here = Handle::current();
            let runtime = here.id();
            if let Some(last_resort) = &mut self.queue().last_resort {
                last_resort.runtime = Some(runtime);
            }
            let Some(runner) = Runner::enter(&self, &here) else { return };
            tokio::select! {
                () = runner.of_last_resort().run() => {}
                () = self.until_all_settled(runtime) => {}
            }
        });
    }

    async fn until_all_settled(&self, runtime: runtime::Id) {
        loop {
            self.until(|queue| queue.releases.all_settled()).await;
            sleep(IDLE_BEFORE_EXIT).await;
            let mut queue = self.queue();
            if queue.releases.all_settled() {
                // In the same critical section, so that the next caller starts another thread.
                queue.remove(runtime);
                return;
            }
        }
    }
}
