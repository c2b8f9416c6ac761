//! Agrees on the fencing token of a shared acquisition to which the nodes gave different numbers.

use std::sync::atomic::Ordering;

use super::RedlockStore;
use super::acquire_answers::AcquireAnswers;
use super::round::Round;
use crate::FencingToken;
use crate::lock::fencing::{self, FARTHEST_HINT};
use crate::store::{
    AcquireOutcome, AcquireRequest, AnyStore, RenewOutcome, RenewRequest, StoreError, Waiting,
};

/// How often a number is requested before the acquisition fails.
const TRIES: usize = 5;

impl RedlockStore {
    /// Returns a number that enough nodes gave. A node gives no number twice, so no other process
    /// can have the same number from enough nodes. The nodes that granted are queried again, for a
    /// number beyond all that they gave.
    ///
    /// The greatest number must not be written back to the nodes of a shared lock: a node may have
    /// given it to another holder of the same lock.
    pub(super) async fn agree_on_token(
        &self,
        request: &AcquireRequest,
        answers: &AcquireAnswers,
        needed: usize,
    ) -> Result<AcquireOutcome, StoreError> {
        let granted: Vec<usize> = answers.granted().collect();
        let (mut greatest, _) = answers.number();
        for _ in 0..TRIES {
            if greatest.counter() > fencing::clock().saturating_add(FARTHEST_HINT / 2) {
                // The other nodes ignore a hint this far ahead, but they accept a fence.
                let enough = self.quorum.needed(request.claim.sharing());
                self.raise_counters(request, granted.iter().copied(), greatest, enough).await;
            }
            self.hint.fetch_max(greatest.counter(), Ordering::Relaxed);
            let (next, behind) = (self.next_hint(), greatest.counter().saturating_add(1));
            // A node ignores a hint far ahead of its own clock, and this process's clock may be.
            let is_near = next <= behind.saturating_add(FARTHEST_HINT / 2);
            let hint = if is_near { next } else { behind };
            let again = request.clone().waiting(Waiting::Not).hint(hint);
            let ask = |(nth, node): (usize, &AnyStore)| {
                let (node, again) = (AnyStore::clone(node), again.clone());
                let is_asked = granted.contains(&nth);
                async move {
                    match is_asked {
                        true => node.acquire(&again).await,
                        false => Err(StoreError::new("it has not granted the lock").not_sent()),
                    }
                }
            };
            let round = Round::new(self.nodes.iter().enumerate().map(ask));
            let agreed = |counted: &AcquireAnswers| counted.agreed().is_some();
            let counted = self.answers(round, &request.claim, needed, agreed).await;
            if let Some(fencing) = counted.agreed() {
                let contended = answers.contended() || counted.contended();
                return Ok(AcquireOutcome::Acquired { fencing, contended });
            }
            if !counted.are_enough() {
                break;
            }
            greatest = greatest.max(counted.number().0);
        }
        Err(StoreError::new(format!(
            "its fencing token is to be given by {needed} servers alike, and was not"
        )))
    }
    /// Raises the fencing counters of these nodes, which granted the claim, to `number`. Returns
    /// how many accepted it. Returns early once `enough` did, so that a node that hangs does not
    /// delay it.
    pub(super) async fn raise_counters(
        &self,
        request: &AcquireRequest,
        nodes: impl Iterator<Item = usize>,
        number: FencingToken,
        enough: usize,
    ) -> usize {
        let least = [RenewRequest::new(request.claim.clone(), request.ttl).fenced(number)];
        let mut round = Round::new(nodes.map(|node| self.nodes[node].renew(&least)));
        let mut accepted = 0;
        while accepted < enough
            && let Some((_, mut answers)) = round.next().await
        {
            accepted += usize::from(matches!(answers.pop(), Some(Ok(RenewOutcome::Renewed))));
        }
        accepted
    }
}
