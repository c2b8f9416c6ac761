//! Work that goes on if its caller gives up: a connection whose statement has no reply yet can carry
//! no other.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// The caller polls the work itself, so that no task stands between it and the connection. Dropped
/// before its end, the work goes on in a task.
pub(super) struct Completing<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Completing<T> {
    pub(super) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for Completing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let outcome = work.as_mut().poll(context);
        if outcome.is_ready() {
            self.0 = None;
        }
        outcome
    }
}

impl<T: Send + 'static> Drop for Completing<T> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { drop(work.await) });
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
        let work = Completing::new(async move {
            sleep(Duration::from_secs(2)).await;
            sender.send(()).ok();
        });
        timeout(Duration::from_secs(1), work).await.unwrap_err();
        done.await.expect("it was dropped");
    }
}
