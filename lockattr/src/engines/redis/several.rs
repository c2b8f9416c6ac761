//! A claim for keys in several slots of a cluster: acquired slot after slot, in the order that all
//! processes use, all or none.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::RedisStore;
use super::servers::Place;
use crate::FencingToken;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, ReleaseRequest, RenewOutcome, RenewRequest, StoreError,
    Waiting,
};

impl RedisStore {
    /// Acquires all parts of a claim. If one is refused, the claim releases the parts that it
    /// acquired, joins that part's queue if it waits, and begins again when it is notified.
    pub(super) async fn ask_several(
        &self,
        asked: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, waiting, .. } = asked;
        let stood = claim.queued().is_some();
        let waiting = match waiting {
            Waiting::Not => Waiting::Not,
            Waiting::Queued | Waiting::Told { .. } => Waiting::Told { again: stood },
        };
        if waiting != Waiting::Not {
            claim.enter_queue(*ttl, waiting);
        }
        let parts = self.servers.parts(claim);
        // Subscribe first, as for one key. With the whole claim, because the parts end with this
        // call.
        try_join_all(
            parts
                .iter()
                .map(|(place, _)| self.servers.hear(*place, claim, waiting != Waiting::Not)),
        )
        .await?;
        let (mut numbers, mut anybody_waits) = (Vec::new(), false);
        for (nth, (place, part)) in parts.iter().enumerate() {
            let asks = AcquireRequest { claim: part.clone(), waiting, ..asked.clone() };
            match self.ask_in_place(*place, &asks).await {
                Ok(AcquireOutcome::Acquired { fencing, contended }) => {
                    numbers.push(fencing);
                    anybody_waits |= contended;
                }
                Ok(held @ AcquireOutcome::Held { .. }) => {
                    let (taken, behind) = (&parts[..nth], &parts[nth + 1..]);
                    // Where it was queued before, others may wait for it to ask.
                    let behind = if stood { behind } else { &[] };
                    self.let_go(taken.iter().chain(behind)).await?;
                    return Ok(held);
                }
                Err(error) => {
                    // The acquired parts must not wait for a node that is away.
                    let _unknown_anyway = self.let_go(&parts[..nth]).await;
                    return Err(if nth > 0 { unknown(error) } else { error });
                }
            }
        }
        let fencing = self.agree(&parts, &numbers, asked).await.map_err(unknown)?;
        Ok(AcquireOutcome::Acquired { fencing, contended: anybody_waits })
    }

    /// Returns the one token of this acquisition: the greatest. Raises the counters that gave a
    /// smaller one, so that every later token is greater.
    async fn agree(
        &self,
        parts: &[(Place, Arc<Claim>)],
        numbers: &[FencingToken],
        asked: &AcquireRequest,
    ) -> Result<FencingToken, StoreError> {
        let missing = || StoreError::new("a claim without keys");
        let fencing = numbers.iter().copied().max().ok_or_else(missing)?;
        let behind = parts.iter().zip(numbers).filter(|(_, number)| **number < fencing);
        let raised: Vec<_> = behind
            .map(|((_, part), _)| RenewRequest::new(part.clone(), asked.ttl).fenced(fencing))
            .collect();
        for answer in self.renew_all(&raised).await {
            if answer? == RenewOutcome::NotHeld {
                return Err(StoreError::new("a part of it was lost while the rest was taken"));
            }
        }
        Ok(fencing)
    }

    async fn let_go(
        &self,
        parts: impl IntoIterator<Item = &(Place, Arc<Claim>)>,
    ) -> Result<(), StoreError> {
        let parts: Vec<_> =
            parts.into_iter().map(|(_, part)| ReleaseRequest::new(part.clone())).collect();
        // A part that is already lost needs no release.
        let answers = self.release_all(&parts).await;
        answers.into_iter().collect::<Result<Vec<_>, _>>().map_err(unknown).map(|_| ())
    }
}

/// Removes the mark that nothing was sent: whatever happened to this command, there is something to
/// undo.
pub(super) fn unknown(error: StoreError) -> StoreError {
    StoreError::new(error.to_string()).with_source(error)
}
