//! One acquisition attempt on all nodes: counts the replies, and releases what a failed attempt
//! got.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use super::RedlockStore;
use super::acquire_answers::AcquireAnswers;
use super::round::Round;
use crate::platform::entropy::random_fraction;
use crate::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, ReleaseRequest, Sharing, StoreError, Waiting,
};

impl RedlockStore {
    pub(super) async fn acquire_on_all(
        &self,
        asked: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let (waits, stood) = (asked.waiting != Waiting::Not, asked.claim.queued().is_some());
        if waits && !stood {
            // Most locks are free, so the first request does not enter the wait queue.
            let once = asked.clone().waiting(Waiting::Not);
            let acquired = self.attempt(&once, true).await?;
            if matches!(acquired, AcquireOutcome::Acquired { .. }) {
                return Ok(acquired);
            }
        }
        self.attempt(asked, waits).await
    }

    async fn attempt(
        &self,
        asked: &AcquireRequest,
        comes_back: bool,
    ) -> Result<AcquireOutcome, StoreError> {
        let waits = asked.waiting != Waiting::Not;
        if let Some(last) = asked.claim.queued_attempt() {
            // That attempt may hold the lock: its outcome is unknown.
            let all = 0..self.nodes.len();
            self.give_back(&last, all, self.quorum.majority(), true).await;
        }
        let mut request = asked.clone().hint(self.next_hint());
        request.claim = asked.claim.next_attempt();
        request.companion = asked.companion.as_ref().map(Claim::last_attempt);
        if waits {
            request.waiting = Waiting::Told { again: asked.claim.queued().is_some() };
            asked.claim.enters_queue(asked.ttl, request.waiting);
        }
        let began = Instant::now();
        let needed = self.quorum.needed(asked.claim.sharing());
        let ask = |node: AnyStore| {
            let request = request.clone();
            async move { node.acquire(&request).await }
        };
        let round = Round::new(self.nodes.iter().cloned().map(ask));
        let decided = |answers: &AcquireAnswers| answers.are_enough() || answers.are_contention();
        let answers = self.answers(round, &request.claim, needed, decided).await;
        let outcome = match answers.are_enough() {
            true => self.issue(&request, &answers, needed).await,
            false if answers.are_contention() => {
                let (holder, again) = answers.contention(began.elapsed(), random_fraction());
                Ok(AcquireOutcome::Held { holder, queued: waits.then_some(again) })
            }
            false => Err(answers.outage()),
        };
        if !matches!(outcome, Ok(AcquireOutcome::Acquired { .. })) {
            let (nodes, granted) = (answers.may_have_granted(), answers.granted().count());
            self.give_back(&request.claim, nodes, granted, comes_back).await;
            asked.claim.end_attempt();
        }
        outcome
    }

    /// Returns the fencing token of an acquisition that enough nodes granted, once enough of them
    /// know it. A node knows it if it gave that number itself, or accepted it while this attempt
    /// alone held the lock there. Nodes without a known reply do not count, or two claims could be
    /// issued the same token (`docs/fencing-over-redlock.md`).
    async fn issue(
        &self,
        request: &AcquireRequest,
        answers: &AcquireAnswers,
        needed: usize,
    ) -> Result<AcquireOutcome, StoreError> {
        let (fencing, is_to_be_written) = answers.number();
        let acquired = AcquireOutcome::Acquired { fencing, contended: answers.contended() };
        if !is_to_be_written {
            return Ok(acquired);
        }
        if request.claim.sharing() != Sharing::Exclusive {
            return self.agree_on_token(request, answers, needed).await;
        }
        let accepted = self.raise_counters(request, answers.granted(), fencing, needed).await;
        if accepted >= needed {
            return Ok(acquired);
        }
        Err(StoreError::new(format!(
            "its fencing token reached {accepted} servers only, of {needed} that must know it"
        )))
    }

    /// Counts the nodes' replies to an attempt until it is `decided`.
    pub(super) async fn answers<F>(
        &self,
        mut round: Round<F>,
        attempt: &Arc<Claim>,
        needed: usize,
        decided: impl Fn(&AcquireAnswers) -> bool,
    ) -> AcquireAnswers
    where
        F: Future<Output = Result<AcquireOutcome, StoreError>> + Send + 'static,
    {
        let mut answers = AcquireAnswers::of(self.nodes.len(), needed);
        while !decided(&answers)
            && let Some((node, answer)) = round.next().await
        {
            answers.count(node, answer);
        }
        for (node, answer) in self.see_through_late(round, attempt) {
            answers.count(node, answer);
        }
        answers
    }

    /// Runs the requests of an attempt to completion in the background. A request that waits for
    /// its connection or its subscription may be executed after the release of the same attempt.
    /// The release is then sent again.
    fn see_through_late<F>(
        &self,
        round: Round<F>,
        attempt: &Arc<Claim>,
    ) -> VecDeque<(usize, F::Output)>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (nodes, attempt) = (self.nodes.clone(), attempt.clone());
        round.see_through_and(move |nth| {
            // If no release has been answered yet, it is executed after this request.
            let quietly = attempt.released_on(nth)?;
            let (node, releases) = (nodes[nth].clone(), [releasing(&attempt, quietly)]);
            // If this release fails, the lease expires by itself.
            Some(async move { drop(node.release(&releases).await) })
        })
    }

    /// Releases what an attempt may have acquired on these nodes: quietly, if the claim comes back.
    /// Waits for `enough` replies, so that the claim's next attempt does not find its own lock.
    /// Does not wait for nodes that hang, because the next attempt has another owner token than
    /// what they execute later.
    async fn give_back(
        &self,
        attempt: &Arc<Claim>,
        nodes: impl IntoIterator<Item = usize>,
        enough: usize,
        comes_back: bool,
    ) {
        let release = |node: usize| {
            let (nth, attempt) = (node, attempt.clone());
            let (node, releases) = (self.nodes[node].clone(), [releasing(&attempt, comes_back)]);
            async move {
                let answer = node.release(&releases).await.pop();
                attempt.note_released(nth, comes_back);
                answer
            }
        };
        let mut round = Round::new(nodes.into_iter().map(release));
        let mut answered = 0;
        while answered < enough
            && let Some((_, answer)) = round.next().await
        {
            answered += usize::from(matches!(answer, Some(Ok(_))));
        }
        round.see_through();
    }
}

fn releasing(attempt: &Arc<Claim>, quietly: bool) -> ReleaseRequest {
    ReleaseRequest { quietly, ..ReleaseRequest::new(attempt.clone()) }
}
