//! One question to all nodes at once, and their answers as they come.

use std::collections::VecDeque;
use std::future::{Ready, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// The questions that are still open, and the answers that were not looked at yet.
///
/// At the first look every node is asked, whatever the others say. Who stops looking after a majority
/// [sees it through](Self::see_through): a question that is dropped may not have been sent, and each
/// node that has the lock is one that another may do without.
pub(super) struct Round<F: Future> {
    open: Vec<Option<Pin<Box<F>>>>,
    came: VecDeque<(usize, F::Output)>,
}

impl<F: Future> Round<F> {
    pub(super) fn new(questions: impl IntoIterator<Item = F>) -> Self {
        let open = questions.into_iter().map(|question| Some(Box::pin(question))).collect();
        Self { open, came: VecDeque::new() }
    }

    /// The next answer, and which node's it is; `None` once all have come.
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
    /// Ensures that those who have not answered yet are asked to the end; what has come and was
    /// not looked at.
    pub(super) fn see_through(self) -> VecDeque<(usize, F::Output)> {
        self.see_through_and(|_| None::<Ready<()>>)
    }

    /// The same, and does what there is to do about each node when its answer comes.
    pub(super) fn see_through_and<D>(
        mut self,
        then: impl Fn(usize) -> Option<D> + Send + 'static,
    ) -> VecDeque<(usize, F::Output)>
    where
        D: Future<Output = ()> + Send + 'static,
    {
        let came = std::mem::take(&mut self.came);
        // Outside of a runtime nothing can be asked; then nothing was.
        if self.open.iter().any(Option::is_some)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                while let Some((node, _)) = self.next().await {
                    if let Some(work) = then(node) {
                        // Of its own: the others are not to wait for it.
                        tokio::spawn(work);
                    }
                }
            });
        }
        came
    }
}
