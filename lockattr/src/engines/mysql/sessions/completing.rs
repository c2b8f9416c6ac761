//! Work that goes on if its caller gives up: a connection whose statement has no reply yet can carry
//! no other.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// The caller polls the work itself, so that no task stands between it and the connection. Dropped
/// before its end, the work goes on in a task of the connection's runtime. The thread of the caller
/// may belong to none, or to one that stops.
pub(super) struct Completing<T: Send + 'static> {
    runtime: Handle,
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
}

impl<T: Send + 'static> Completing<T> {
    /// Work on a connection that this runtime drives.
    pub(super) fn new(runtime: Handle, work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { runtime, work: Some(Box::pin(work)) }
    }
}

impl<T: Send + 'static> Future for Completing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let outcome = work.as_mut().poll(context);
        if outcome.is_ready() {
            self.work = None;
        }
        outcome
    }
}

impl<T: Send + 'static> Drop for Completing<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.runtime.spawn(async move { drop(work.await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::{sleep, timeout};

    use super::*;

    /// Red without: `Drop`.
    #[tokio::test(start_paused = true)]
    async fn work_goes_on_when_its_caller_gives_up() {
        let (sender, done) = oneshot::channel();
        let work = Completing::new(Handle::current(), async move {
            sleep(Duration::from_secs(2)).await;
            sender.send(()).ok();
        });
        timeout(Duration::from_secs(1), work).await.unwrap_err();
        done.await.expect("it was dropped");
    }

    /// Red without: the runtime. The thread belongs to none.
    #[test]
    fn work_goes_on_when_a_thread_without_a_runtime_drops_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (sender, done) = oneshot::channel();
        let mut work = Completing::new(runtime.handle().clone(), async move {
            tokio::task::yield_now().await;
            sender.send(()).ok();
        });
        let polled = runtime.block_on(async { futures_util::poll!(&mut work) });
        assert!(polled.is_pending());
        drop(work);
        runtime.block_on(done).expect("it was dropped");
    }
}
