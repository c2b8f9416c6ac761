//! The number of an acquisition that shares its lock, where the nodes do not agree on one.

use std::sync::atomic::Ordering;

use super::RedlockStore;
use super::round::Round;
use super::votes::Votes;
use crate::FencingToken;
use crate::lock::fencing::{self, FARTHEST_HINT};
use crate::store::{
    AcquireOutcome, AcquireRequest, AnyStore, RenewOutcome, RenewRequest, StoreError, Waiting,
};

/// How often a number is asked for that nobody overtakes.
const TRIES: usize = 5;

impl RedlockStore {
    /// A number that enough nodes have given: no node gives one twice, so nobody else can have enough
    /// of it. The nodes that granted are asked again, for one that is beyond all of theirs.
    ///
    /// The greatest must not be written back where a lock is shared: a node may have given it to
    /// another, who has the lock there at the same time.
    pub(super) async fn recount(
        &self,
        wish: &AcquireRequest,
        votes: &Votes,
        needed: usize,
    ) -> Result<AcquireOutcome, StoreError> {
        let granted: Vec<usize> = votes.granted().collect();
        let (mut greatest, _) = votes.number();
        for _ in 0..TRIES {
            if greatest.counter() > fencing::clock().saturating_add(FARTHEST_HINT / 2) {
                // No hint takes the other nodes so far; to be told of a number does.
                self.tell(wish, &granted, greatest).await;
            }
            self.hint.fetch_max(greatest.counter(), Ordering::Relaxed);
            let (next, behind) = (self.next_hint(), greatest.counter().saturating_add(1));
            // No node follows a clock that is far ahead of its own, as this process' may be.
            let is_near = next <= behind.saturating_add(FARTHEST_HINT / 2);
            let hint = if is_near { next } else { behind };
            let again = wish.clone().waiting(Waiting::Not).hint(hint);
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
            let agreed = |counted: &Votes| counted.agreed().is_some();
            let counted = self.votes(round, &wish.claim, needed, agreed).await;
            if let Some(fencing) = counted.agreed() {
                let contended = votes.contended() || counted.contended();
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
    /// Lets these nodes count from this number on, which no acquisition has.
    async fn tell(&self, wish: &AcquireRequest, nodes: &[usize], number: FencingToken) {
        let least = [RenewRequest::new(wish.claim.clone(), wish.ttl).fenced(number)];
        let mut round = Round::new(nodes.iter().map(|&node| self.nodes[node].renew(&least)));
        let mut told = 0;
        // One that hangs is not waited for: it would not answer what follows either.
        while told < self.quorum.needed(wish.claim.sharing())
            && let Some((_, mut answers)) = round.next().await
        {
            told += usize::from(matches!(answers.pop(), Some(Ok(RenewOutcome::Renewed))));
        }
    }
}
