//! Agrees on the fencing token of a shared acquisition to which the nodes gave different numbers.

use std::sync::atomic::Ordering;

use super::RedlockStore;
use super::acquire_replies::AcquireReplies;
use super::round::Round;
use crate::FencingToken;
use crate::lock::fencing::{self, FARTHEST_HINT};
use crate::store::{
    AcquireOutcome, AcquireRequest, AnyStore, RenewOutcome, RenewRequest, StoreError, Waiting,
};

/// How often a number is requested before the acquisition fails.
const MAX_ATTEMPTS: usize = 5;

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
        replies: &AcquireReplies,
        needed: usize,
    ) -> Result<AcquireOutcome, StoreError> {
        let granted: Vec<usize> = replies.granted().collect();
        let (mut greatest, _) = replies.token();
        for _ in 0..MAX_ATTEMPTS {
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
            let send = |(nth, node): (usize, &AnyStore)| {
                let (node, again) = (AnyStore::clone(node), again.clone());
                let has_granted = granted.contains(&nth);
                async move {
                    match has_granted {
                        true => node.acquire(&again).await,
                        false => {
                            Err(StoreError::new("the server has not granted the lock").not_sent())
                        }
                    }
                }
            };
            let round = Round::new(self.nodes.iter().enumerate().map(send));
            let agreed = |counted: &AcquireReplies| counted.agreed().is_some();
            let counted = self.collect_replies(round, &request.claim, needed, agreed).await;
            if let Some(fencing) = counted.agreed() {
                let contended = replies.contended() || counted.contended();
                return Ok(AcquireOutcome::Acquired { fencing, contended });
            }
            if !counted.are_enough() {
                break;
            }
            greatest = greatest.max(counted.token().0);
        }
        Err(StoreError::new(format!(
            "{needed} servers must give the claim the same fencing token, and did not"
        )))
    }
    /// Raises the fencing counters of these nodes, which granted the claim, to `token`. Returns
    /// how many accepted it. Returns early once `enough` did, so that a node that hangs does not
    /// delay it.
    pub(super) async fn raise_counters(
        &self,
        request: &AcquireRequest,
        nodes: impl Iterator<Item = usize>,
        token: FencingToken,
        enough: usize,
    ) -> usize {
        let requests = [RenewRequest::new(request.claim.clone(), request.ttl).fenced(token)];
        let mut round = Round::new(nodes.map(|node| self.nodes[node].renew(&requests)));
        let mut accepted = 0;
        while accepted < enough
            && let Some((_, mut replies)) = round.next().await
        {
            accepted += usize::from(matches!(replies.pop(), Some(Ok(RenewOutcome::Renewed))));
        }
        accepted
    }
}
