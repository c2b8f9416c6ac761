//! One request to all nodes at once, and their replies as they arrive.

use std::collections::VecDeque;
use std::future::{Ready, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// The requests without a reply, and the replies that were not read yet.
///
/// The first call of `next` sends the requests to all nodes. A caller that stops after a majority
/// must [run it to completion](Self::finish_in_background): a dropped request may never be sent, and each
/// further node that executes it allows another to fail later.
pub(super) struct Round<F: Future> {
    pending: Vec<Option<Pin<Box<F>>>>,
    replies: VecDeque<(usize, F::Output)>,
}

impl<F: Future> Round<F> {
    pub(super) fn new(requests: impl IntoIterator<Item = F>) -> Self {
        let pending = requests.into_iter().map(|request| Some(Box::pin(request))).collect();
        Self { pending, replies: VecDeque::new() }
    }

    /// Returns the next reply and its node; `None` once all have been returned.
    pub(super) async fn next(&mut self) -> Option<(usize, F::Output)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, F::Output)>> {
        if let Some(reply) = self.replies.pop_front() {
            return Poll::Ready(Some(reply));
        }
        let mut any_pending = false;
        for (node, slot) in self.pending.iter_mut().enumerate() {
            let Some(request) = slot else { continue };
            match request.as_mut().poll(context) {
                Poll::Ready(reply) => {
                    self.replies.push_back((node, reply));
                    *slot = None;
                }
                Poll::Pending => any_pending = true,
            }
        }
        match self.replies.pop_front() {
            None if any_pending => Poll::Pending,
            reply => Poll::Ready(reply),
        }
    }
}

impl<F> Round<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// Runs the open requests to completion in the background. Returns the replies that arrived and
    /// were not read.
    pub(super) fn finish_in_background(self) -> VecDeque<(usize, F::Output)> {
        self.finish_in_background_with(|_, _| None::<Ready<()>>)
    }

    /// The same; runs `then` for each node when its reply arrives.
    pub(super) fn finish_in_background_with<D>(
        mut self,
        then: impl Fn(usize, F::Output) -> Option<D> + Send + 'static,
    ) -> VecDeque<(usize, F::Output)>
    where
        D: Future<Output = ()> + Send + 'static,
    {
        let replies = std::mem::take(&mut self.replies);
        // Outside of a runtime no request can be sent, so none was.
        if self.pending.iter().any(Option::is_some)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                while let Some((node, reply)) = self.next().await {
                    if let Some(work) = then(node, reply) {
                        // In a task of its own, so that the other nodes do not wait for it.
                        tokio::spawn(work);
                    }
                }
            });
        }
        replies
    }
}
