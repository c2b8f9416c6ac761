//! A claim for keys in several slots of a cluster: acquired slot after slot, in the order that all
//! processes use, all or none.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::RedisStore;
use super::servers::Route;
use crate::FencingToken;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, ReleaseRequest, RenewOutcome, RenewRequest, StoreError,
    Waiting,
};

impl RedisStore {
    /// Acquires all parts of a claim. If one is refused, the claim releases the parts that it
    /// acquired, joins that part's queue if it waits, and begins again when it is notified.
    pub(super) async fn acquire_on_routes(
        &self,
        request: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, waiting, .. } = request;
        let was_queued = claim.queued().is_some();
        let waiting = match waiting {
            Waiting::Not => Waiting::Not,
            Waiting::Queued | Waiting::Told { .. } => Waiting::Told { again: was_queued },
        };
        if waiting != Waiting::Not {
            claim.enter_queue(*ttl, waiting);
        }
        let parts = self.servers.parts(claim);
        // Subscribe first, as for one key. With the whole claim, because the parts end with this
        // call.
        try_join_all(parts.iter().map(|(route, _)| {
            self.servers.ensure_subscribed(*route, claim, waiting != Waiting::Not)
        }))
        .await?;
        let (mut tokens, mut any_contended) = (Vec::new(), false);
        for (nth, (route, part)) in parts.iter().enumerate() {
            let part_request = AcquireRequest { claim: part.clone(), waiting, ..request.clone() };
            match self.acquire_on_route(*route, &part_request).await {
                Ok(AcquireOutcome::Acquired { fencing, contended }) => {
                    tokens.push(fencing);
                    any_contended |= contended;
                }
                Ok(held @ AcquireOutcome::Held { .. }) => {
                    let (acquired, behind) = (&parts[..nth], &parts[nth + 1..]);
                    // Where it was queued before, others may wait for it to ask.
                    let behind = if was_queued { behind } else { &[] };
                    self.release_parts(acquired.iter().chain(behind)).await?;
                    return Ok(held);
                }
                Err(error) => {
                    // The acquired parts must not wait for a node that is away.
                    let _unknown_anyway = self.release_parts(&parts[..nth]).await;
                    return Err(if nth > 0 { unknown(error) } else { error });
                }
            }
        }
        let fencing = self.agree_on_token(&parts, &tokens, request).await.map_err(unknown)?;
        Ok(AcquireOutcome::Acquired { fencing, contended: any_contended })
    }

    /// Returns the one token of this acquisition: the greatest. Raises the counters that gave a
    /// smaller one, so that every later token is greater.
    async fn agree_on_token(
        &self,
        parts: &[(Route, Arc<Claim>)],
        tokens: &[FencingToken],
        request: &AcquireRequest,
    ) -> Result<FencingToken, StoreError> {
        let missing = || StoreError::new("a claim has no keys");
        let fencing = tokens.iter().copied().max().ok_or_else(missing)?;
        let behind = parts.iter().zip(tokens).filter(|(_, token)| **token < fencing);
        let renewals: Vec<_> = behind
            .map(|((_, part), _)| RenewRequest::new(part.clone(), request.ttl).fenced(fencing))
            .collect();
        for outcome in self.renew_all(&renewals).await {
            if outcome? == RenewOutcome::NotHeld {
                return Err(StoreError::new(
                    "one of the claim's locks was lost while the others were acquired",
                ));
            }
        }
        Ok(fencing)
    }

    async fn release_parts(
        &self,
        parts: impl IntoIterator<Item = &(Route, Arc<Claim>)>,
    ) -> Result<(), StoreError> {
        let parts: Vec<_> =
            parts.into_iter().map(|(_, part)| ReleaseRequest::new(part.clone())).collect();
        // A part that is already lost needs no release.
        let outcomes = self.release_all(&parts).await;
        outcomes.into_iter().collect::<Result<Vec<_>, _>>().map_err(unknown).map(|_| ())
    }
}

/// Removes the mark that nothing was sent: whatever happened to this command, there is something to
/// undo.
pub(super) fn unknown(error: StoreError) -> StoreError {
    StoreError::new(error.to_string()).with_source(error)
}
