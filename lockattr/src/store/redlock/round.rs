//! One question to all nodes at once, and their answers as they come.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The questions that are still open, and the answers that were not looked at yet.
///
/// At the first look every node is asked, whatever the others say: who stops looking after a
/// majority has still asked all of them.
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

    /// The answers that have come and were not looked at.
    pub(super) fn came(self) -> VecDeque<(usize, F::Output)> {
        self.came
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
    F::Output: Send,
{
    /// Sees to it that those who have not answered yet are asked to the end.
    pub(super) fn see_through(mut self) {
        // Outside of a runtime nothing can be asked; then nothing was.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { while self.next().await.is_some() {} });
        }
    }
}
