//! One request to all nodes at once, and their replies as they arrive.

use std::collections::VecDeque;
use std::future::{Ready, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// The requests without a reply, and the replies that were not read yet.
///
/// The first call of `next` sends the requests to all nodes. A caller that stops after a majority
/// must [run it to completion](Self::see_through): a dropped request may never be sent, and each
/// further node that executes it allows another to fail later.
pub(super) struct Round<F: Future> {
    open: Vec<Option<Pin<Box<F>>>>,
    came: VecDeque<(usize, F::Output)>,
}

impl<F: Future> Round<F> {
    pub(super) fn new(questions: impl IntoIterator<Item = F>) -> Self {
        let open = questions.into_iter().map(|question| Some(Box::pin(question))).collect();
        Self { open, came: VecDeque::new() }
    }

    /// Returns the next reply and its node; `None` once all have been returned.
    pub(super) async fn next(&mut self) -> Option<(usize, F::Output)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, F::Output)>> {
        if let Some(answer) = self.came.pop_front() {
            return Poll::Ready(Some(answer));
        }
        let mut waits = false;
        for (node, slot) in self.open.iter_mut().enumerate() {
            let Some(question) = slot else { continue };
            match question.as_mut().poll(context) {
                Poll::Ready(answer) => {
                    self.came.push_back((node, answer));
                    *slot = None;
                }
                Poll::Pending => waits = true,
            }
        }
        match self.came.pop_front() {
            None if waits => Poll::Pending,
            answer => Poll::Ready(answer),
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
    pub(super) fn see_through(self) -> VecDeque<(usize, F::Output)> {
        self.see_through_and(|_| None::<Ready<()>>)
    }

    /// The same; runs `then` for each node when its reply arrives.
    pub(super) fn see_through_and<D>(
        mut self,
        then: impl Fn(usize) -> Option<D> + Send + 'static,
    ) -> VecDeque<(usize, F::Output)>
    where
        D: Future<Output = ()> + Send + 'static,
    {
        let came = std::mem::take(&mut self.came);
        // Outside of a runtime no request can be sent, so none was.
        if self.open.iter().any(Option::is_some)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                while let Some((node, _)) = self.next().await {
                    if let Some(work) = then(node) {
                        // In a task of its own, so that the other nodes do not wait for it.
                        tokio::spawn(work);
                    }
                }
            });
        }
        came
    }
}
