//! One attempt on all nodes: counted as the answers come, given back where it came to nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use super::RedlockStore;
use super::round::Round;
use super::votes::Votes;
use crate::platform::entropy::random_fraction;
use crate::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, ReleaseRequest, RenewOutcome, RenewRequest,
    Sharing, StoreError, Waiting,
};

impl RedlockStore {
    pub(super) async fn acquire_on_all(
        &self,
        asked: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let (waits, stood) = (asked.waiting != Waiting::Not, asked.claim.queued().is_some());
        if waits && !stood {
            // Most find it free: only those who do not need a place in line.
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
            // It has the lock, or nobody saw what became of it.
            let all = 0..self.nodes.len();
            self.give_back(&last, all, self.quorum.majority(), true).await;
        }
        let mut wish = asked.clone().hint(self.next_hint());
        wish.claim = asked.claim.next_attempt();
        wish.companion = asked.companion.as_ref().map(Claim::last_attempt);
        if waits {
            wish.waiting = Waiting::Told { again: asked.claim.queued().is_some() };
            asked.claim.enters_queue(asked.ttl, wish.waiting);
        }
        let began = Instant::now();
        let needed = self.quorum.needed(asked.claim.sharing());
        let ask = |node: AnyStore| {
            let wish = wish.clone();
            async move { node.acquire(&wish).await }
        };
        let round = Round::new(self.nodes.iter().cloned().map(ask));
        let decided = |votes: &Votes| votes.are_enough() || votes.are_contention();
        let votes = self.votes(round, &wish.claim, needed, decided).await;
        let outcome = match votes.are_enough() {
            true => self.issue(&wish, &votes, needed).await,
            false if votes.are_contention() => {
                let (holder, again) = votes.contention(began.elapsed(), random_fraction());
                Ok(AcquireOutcome::Held { holder, queued: waits.then_some(again) })
            }
            false => Err(votes.outage()),
        };
        if !matches!(outcome, Ok(AcquireOutcome::Acquired { .. })) {
            let (nodes, granted) = (votes.may_have_granted(), votes.granted().count());
            self.give_back(&wish.claim, nodes, granted, comes_back).await;
            asked.claim.end_attempt();
        }
        outcome
    }

    /// The number of an acquisition that enough nodes have granted, once enough of them know it: they
    /// gave it themselves, or took it while the lock was still this attempt's, and nobody's beside it.
    /// Those whose answer is not known do not count, or a number could be issued twice
    /// (`docs/fencing-over-redlock.md`).
    async fn issue(
        &self,
        wish: &AcquireRequest,
        votes: &Votes,
        needed: usize,
    ) -> Result<AcquireOutcome, StoreError> {
        let (fencing, is_to_be_written) = votes.number();
        let acquired = AcquireOutcome::Acquired { fencing, contended: votes.contended() };
        if !is_to_be_written {
            return Ok(acquired);
        }
        if wish.claim.sharing() != Sharing::Exclusive {
            return self.recount(wish, votes, needed).await;
        }
        let write_back = [RenewRequest::new(wish.claim.clone(), wish.ttl).fenced(fencing)];
        let mut round = Round::new(votes.granted().map(|node| self.nodes[node].renew(&write_back)));
        let mut accepted = 0;
        while let Some((_, mut answers)) = round.next().await {
            if matches!(answers.pop(), Some(Ok(RenewOutcome::Renewed))) {
                accepted += 1;
            }
            if accepted >= needed {
                return Ok(acquired);
            }
        }
        Err(StoreError::new(format!(
            "its fencing token reached {accepted} servers only, of {needed} that must know it"
        )))
    }

    /// What the nodes say to an attempt, counted until it is `decided`.
    pub(super) async fn votes<F>(
        &self,
        mut round: Round<F>,
        attempt: &Arc<Claim>,
        needed: usize,
        decided: impl Fn(&Votes) -> bool,
    ) -> Votes
    where
        F: Future<Output = Result<AcquireOutcome, StoreError>> + Send + 'static,
    {
        let mut votes = Votes::of(self.nodes.len(), needed);
        while !decided(&votes)
            && let Some((node, answer)) = round.next().await
        {
            votes.count(node, answer);
        }
        for (node, answer) in self.see_through_late(round, attempt) {
            votes.count(node, answer);
        }
        votes
    }

    /// Sees the questions of an attempt through. One that had to wait for its connection, or for its
    /// subscription, may be executed after the release of what it asked for; that is then sent again.
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
            // If it was not, the release comes behind, as its answer does.
            let quietly = attempt.released_on(nth)?;
            let (node, releases) = (nodes[nth].clone(), [releasing(&attempt, quietly)]);
            // Unknown, if it fails: then the lease ends by itself.
            Some(async move { drop(node.release(&releases).await) })
        })
    }

    /// Gives back what an attempt may have got from these nodes; in silence, if the claim comes back.
    /// Waits for so many of them, so that its next attempt is not in its own way, and not for those
    /// that hang: what they execute later is that of another owner.
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
