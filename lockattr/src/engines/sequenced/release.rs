//! Releases locks, now or after a while (`hold_at_least`).

use std::sync::Arc;

use tokio::time::Instant;

use super::SequencedStore;
use super::claim_record::{MadeEntries, PendingRemoval, Phase};
use super::recipe::LockRecipe;
use crate::store::{ReleaseOutcome, ReleaseRequest, StoreError};

impl<E: LockRecipe> SequencedStore<E> {
    pub(super) async fn release_all(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let (shared, now) = (&self.shared, Instant::now());
        let (mut delayed, mut removals) = (Vec::new(), Vec::<PendingRemoval>::new());
        let actions: Vec<_> = {
            let mut claims = shared.claims();
            let mut begin = |release| {
                let release: &ReleaseRequest = release;
                let token = release.claim.token();
                let holds = claims.get(token).filter(|record| record.phase == Phase::Holding);
                let made = holds.and_then(|record| record.made.clone());
                match made {
                    Some(made) if !release.after.is_zero() => {
                        delayed.push((release, made));
                        ReleaseAction::HoldAtLeast
                    }
                    _ => match claims.begin_removal(token, now) {
                        Some(pending) => {
                            removals.push(pending);
                            ReleaseAction::Remove
                        }
                        None => ReleaseAction::NotHeld,
                    },
                }
            };
            releases.iter().map(&mut begin).collect()
        };
        let (kept, left) = futures_util::future::join(
            async {
                if delayed.is_empty() {
                    Vec::new()
                } else {
                    self.hold_at_least(&delayed, now).await
                }
            },
            async { if removals.is_empty() { Vec::new() } else { shared.leave(&removals).await } },
        )
        .await;
        let (mut kept, mut left) = (kept.into_iter(), left.into_iter());
        let outcome = |action: &ReleaseAction| {
            let held = match action {
                ReleaseAction::NotHeld => Some(Ok(false)),
                ReleaseAction::HoldAtLeast => kept.next(),
                ReleaseAction::Remove => left.next(),
            };
            let held = held.unwrap_or_else(|| {
                Err(StoreError::new("the store sent no reply about this claim"))
            })?;
            Ok(if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld })
        };
        actions.iter().map(outcome).collect()
    }

    /// Keeps locks held for a while longer (`hold_at_least`). Returns for each whether it was held.
    async fn hold_at_least(
        &self,
        delayed: &[(&ReleaseRequest, Arc<MadeEntries>)],
        now: Instant,
    ) -> Vec<Result<bool, StoreError>> {
        let shared = &self.shared;
        let held: Vec<_> = delayed.iter().map(|(release, made)| made.of(&release.claim)).collect();
        let confirmed = shared.recipe.confirm(&held).await;
        let mut to_notify = Vec::new();
        {
            let mut claims = shared.claims();
            for ((release, _), held) in delayed.iter().zip(&confirmed) {
                let (token, end) = (release.claim.token(), now + release.after);
                match held {
                    Ok(true) => {
                        claims.set_end(token, Some(end));
                        let waiting = claims.waiting_for(release.claim.keys());
                        to_notify.extend(waiting.into_iter().map(|token| (token, end)));
                    }
                    // Its remaining entries are removed at once.
                    Ok(false) => _ = claims.entries_lost(token, now),
                    Err(_) => {}
                }
            }
        }
        // After the mutex is released, because the subscriber may lock it.
        for (token, end) in to_notify {
            if let Some(subscriber) = shared.subscribers.get(token.subscriber()) {
                subscriber.ask_again(token, end);
            }
        }
        match shared.ensure_timer() {
            Ok(()) => confirmed,
            Err(error) => confirmed.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

/// What one release does.
enum ReleaseAction {
    NotHeld,
    HoldAtLeast,
    Remove,
}
