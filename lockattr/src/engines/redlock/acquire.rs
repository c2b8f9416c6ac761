//! One acquisition attempt on all nodes: counts the replies, and releases what a failed attempt
//! got.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::RedlockStore;
use super::acquire_replies::AcquireReplies;
use super::round::Round;
use crate::platform::entropy::random_fraction;
use crate::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, ReleaseOutcome, ReleaseRequest, Sharing,
    StoreError, Waiting,
};
use crate::{Holder, HolderId};

impl RedlockStore {
    pub(super) async fn acquire_on_all(
        &self,
        request: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let (may_wait, was_queued) =
            (request.waiting != Waiting::Not, request.claim.queued().is_some());
        if may_wait && !was_queued {
            // Most locks are free, so the first request does not enter the wait queue.
            let once = request.clone().waiting(Waiting::Not);
            let acquired = self.attempt(&once, true).await?;
            if matches!(acquired, AcquireOutcome::Acquired { .. }) {
                return Ok(acquired);
            }
        }
        self.attempt(request, may_wait).await
    }

    async fn attempt(
        &self,
        request: &AcquireRequest,
        will_retry: bool,
    ) -> Result<AcquireOutcome, StoreError> {
        let may_wait = request.waiting != Waiting::Not;
        if let Some(last) = request.claim.queued_attempt() {
            // That attempt may hold the lock: its outcome is unknown.
            let all = 0..self.nodes.len();
            self.release_attempt(&last, all, self.quorum.majority(), true, None).await;
        }
        let mut node_request = request.clone().hint(self.next_hint());
        node_request.claim = request.claim.next_attempt();
        node_request.companion = request.companion.as_ref().map(Claim::last_attempt);
        if may_wait {
            node_request.waiting = Waiting::Told { again: request.claim.queued().is_some() };
            request.claim.enter_queue(request.ttl, node_request.waiting);
        }
        let began = Instant::now();
        let needed = self.quorum.needed(request.claim.sharing());
        let send = |node: AnyStore| {
            let node_request = node_request.clone();
            async move { node.acquire(&node_request).await }
        };
        let round = Round::new(self.nodes.iter().cloned().map(send));
        let decided = |replies: &AcquireReplies| {
            replies.are_enough() || (replies.show_contention() && !replies.may_show_done())
        };
        let replies = self.collect_replies(round, &node_request.claim, needed, decided).await;
        let outcome = match replies.are_enough() {
            true => self.issue(&node_request, &replies, needed).await,
            false if replies.show_contention() => {
                let (holder, again) = replies.contention(began.elapsed(), random_fraction());
                Ok(AcquireOutcome::Held { holder, queued: may_wait.then_some(again) })
            }
            false => Err(replies.outage_error()),
        };
        if !matches!(outcome, Ok(AcquireOutcome::Acquired { .. })) {
            let (nodes, granted) = (replies.may_have_granted(), replies.granted().count());
            let done = outcome.as_ref().ok().and_then(mark_in).and_then(|mark| mark.remaining);
            self.release_attempt(&node_request.claim, nodes, granted, will_retry, done).await;
            request.claim.end_attempt();
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
        replies: &AcquireReplies,
        needed: usize,
    ) -> Result<AcquireOutcome, StoreError> {
        let (fencing, is_to_be_written) = replies.token();
        let acquired = AcquireOutcome::Acquired { fencing, contended: replies.contended() };
        if !is_to_be_written {
            return Ok(acquired);
        }
        if request.claim.sharing() != Sharing::Exclusive {
            return self.agree_on_token(request, replies, needed).await;
        }
        let accepted = self.raise_counters(request, replies.granted(), fencing, needed).await;
        if accepted >= needed {
            return Ok(acquired);
        }
        Err(StoreError::new(format!(
            "only {accepted} servers accepted the fencing token, and {needed} must know it"
        )))
    }

    /// Counts the nodes' replies to an attempt until it is `decided`.
    pub(super) async fn collect_replies<F>(
        &self,
        mut round: Round<F>,
        attempt: &Arc<Claim>,
        needed: usize,
        decided: impl Fn(&AcquireReplies) -> bool,
    ) -> AcquireReplies
    where
        F: Future<Output = Result<AcquireOutcome, StoreError>> + Send + 'static,
    {
        let mut replies = AcquireReplies::of(self.nodes.len(), needed);
        while !decided(&replies)
            && let Some((node, reply)) = round.next().await
        {
            replies.count(node, reply);
        }
        for (node, reply) in self.finish_late_requests(round, attempt, replies.are_enough()) {
            replies.count(node, reply);
        }
        if replies.are_enough() {
            let marks = replies.marks();
            let marks =
                marks.map(|(nth, mark)| clear(self.nodes[nth].clone(), attempt.clone(), mark));
            Round::new(marks).finish_in_background();
        }
        replies
    }

    /// Runs the requests of an attempt to completion in the background. A request that waits for
    /// its connection or its subscription may be executed after the release of the same attempt.
    /// The release is then sent again.
    fn finish_late_requests<F>(
        &self,
        round: Round<F>,
        attempt: &Arc<Claim>,
        is_granted: bool,
    ) -> VecDeque<(usize, F::Output)>
    where
        F: Future<Output = Result<AcquireOutcome, StoreError>> + Send + 'static,
    {
        let (nodes, attempt) = (self.nodes.clone(), attempt.clone());
        round.finish_in_background_with(move |nth, reply| {
            let mark =
                reply.as_ref().ok().and_then(mark_in).filter(|_| is_granted).map(|mark| mark.id);
            // If no release has been answered yet, it is executed after this request.
            let released = attempt.released_on(nth);
            if mark.is_none() && released.is_none() {
                return None;
            }
            let (node, attempt) = (nodes[nth].clone(), attempt.clone());
            Some(async move {
                // If one of these fails, the lease expires by itself, or the next claim tries it.
                if let Some(mark) = mark {
                    drop(clear(node.clone(), attempt.clone(), mark).await);
                }
                if let Some(quietly) = released {
                    drop(node.release(&[releasing(&attempt, quietly)]).await);
                }
            })
        })
    }

    /// Releases what an attempt may have acquired on these nodes: quietly, if the claim comes back.
    /// Waits for `enough` replies, so that the claim's next attempt does not find its own lock.
    /// Does not wait for nodes that hang, because the next attempt has another owner token than
    /// what they execute later.
    ///
    /// If the key is `done` for so long, a node that granted the lock lacks the mark, and gets it in place of the
    /// release: else the key would be open as soon as one more node is down.
    async fn release_attempt(
        &self,
        attempt: &Arc<Claim>,
        nodes: impl IntoIterator<Item = usize>,
        enough: usize,
        will_retry: bool,
        done: Option<Duration>,
    ) {
        let may_mark = attempt.sharing() == Sharing::Exclusive && attempt.keys().len() == 1;
        let done = done.filter(|_| may_mark);
        let release = |node: usize| {
            let (nth, attempt) = (node, attempt.clone());
            let (node, releases) = (self.nodes[node].clone(), [releasing(&attempt, will_retry)]);
            async move {
                if let Some(lasts) = done
                    && let marked @ Ok(ReleaseOutcome::Released) =
                        node.mark_done(&attempt, lasts).await
                {
                    return Some(marked);
                }
                let reply = node.release(&releases).await.pop();
                attempt.note_released(nth, will_retry);
                reply
            }
        };
        let mut round = Round::new(nodes.into_iter().map(release));
        let mut answered = 0;
        while answered < enough
            && let Some((_, reply)) = round.next().await
        {
            answered += usize::from(matches!(reply, Some(Ok(_))));
        }
        round.finish_in_background();
    }
}

/// Takes a mark from a node. Enough nodes have granted the lock to `attempt`, so it is the mark of a minority, which
/// may never have been confirmed, and would deny this node's vote to every claim until its period is over.
async fn clear(node: AnyStore, attempt: Arc<Claim>, mark: HolderId) -> Result<bool, StoreError> {
    match attempt.keys() {
        [key] => node.force_release(key, &mark).await,
        // It is not known whose mark it is.
        _ => Ok(false),
    }
}

/// The mark that refused a claim.
fn mark_in(outcome: &AcquireOutcome) -> Option<&Holder> {
    match outcome {
        AcquireOutcome::Held { holder: Some(holder), .. } if holder.done => Some(holder),
        _ => None,
    }
}

fn releasing(attempt: &Arc<Claim>, quietly: bool) -> ReleaseRequest {
    ReleaseRequest { quietly, ..ReleaseRequest::new(attempt.clone()) }
}
