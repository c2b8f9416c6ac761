//! Renews leases, each with a proof that its entries are still there.

use std::sync::Arc;

use tokio::time::Instant;

use super::SequencedStore;
use super::claim_record::{MadeEntries, Phase};
use super::recipe::LockRecipe;
use crate::FencingToken;
use crate::store::{OwnerToken, RenewOutcome, RenewRequest, StoreError};

impl<E: LockRecipe> SequencedStore<E> {
    pub(super) async fn renew_all(
        &self,
        renewals: &[RenewRequest],
    ) -> Vec<Result<RenewOutcome, StoreError>> {
        let (shared, now) = (&self.shared, Instant::now());
        let held: Vec<_> = {
            let mut claims = shared.claims();
            let mut held = |renewal: &RenewRequest| {
                let token = renewal.claim.token();
                let made =
                    claims.get(token).filter(|record| record.phase == Phase::Holding)?.made.clone();
                // Extended before the reply, which may be late: the lease must not end meanwhile.
                claims.extend_to(token, now + renewal.ttl);
                made
            };
            renewals.iter().map(&mut held).collect()
        };
        let with = renewals.iter().zip(&held);
        let entries: Vec<_> =
            with.filter_map(|(it, made)| Some(made.as_ref()?.of(&it.claim))).collect();
        let mut confirmed = match entries.is_empty() {
            true => Vec::new(),
            false => shared.recipe.confirm(&entries).await,
        }
        .into_iter();
        let (mut claims, mut lost) = (shared.claims(), false);
        let mut settle = |token: OwnerToken, made: &Option<Arc<MadeEntries>>| {
            if made.is_none() {
                return Ok(RenewOutcome::NotHeld);
            }
            let there = confirmed.next().unwrap_or_else(|| {
                Err(StoreError::new("the store sent no reply about this claim"))
            })?;
            if let Some(made) = made.as_ref().filter(|_| there) {
                shared.note_proof(made.session, now);
            }
            // The lease may have ended meanwhile.
            let holds = claims.get(token).is_some_and(|record| record.phase == Phase::Holding);
            if holds && !there {
                lost |= claims.entries_lost(token, now);
            }
            Ok(if holds && there { RenewOutcome::Renewed } else { RenewOutcome::NotHeld })
        };
        let with = renewals.iter().zip(&held);
        let outcomes = with
            .map(|(it, made)| {
                let outcome = settle(it.claim.token(), made)?;
                if outcome == RenewOutcome::Renewed && fence_is_beyond(it, made.as_deref()) {
                    return Err(StoreError::new(
                        "this store cannot raise its fencing counter that high",
                    ));
                }
                Ok(outcome)
            })
            .collect();
        drop(claims);
        if lost {
            // If the timer cannot run, the remaining entries end with the session.
            let _ended_soon = shared.ensure_timer();
        }
        outcomes
    }
}

/// Whether the fence is greater than the number that this store gave. Only a number greater than
/// that one is certain for a later acquisition.
fn fence_is_beyond(renewal: &RenewRequest, made: Option<&MadeEntries>) -> bool {
    let counter = made.map(|made| FencingToken::from_counter(made.counter));
    renewal.fence.is_some_and(|fence| counter.is_none_or(|counter| fence > counter))
}
