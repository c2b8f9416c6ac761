//! Renews locks by asking whether they are still held: they have no TTL at the server.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;

use super::Inner;
use super::claims::State;
use super::session::Session;
use crate::store::{RenewOutcome, RenewRequest, StoreError};

impl Inner {
    /// Renews the claims of one session, in one statement.
    pub(super) async fn renew_on(
        self: &Arc<Self>,
        on: &Arc<Session>,
        renewals: &[&RenewRequest],
    ) -> Vec<Result<RenewOutcome, StoreError>> {
        let checked = self.check_all(on, renewals.iter().map(|renewal| &renewal.claim)).await;
        let renewed = |renewal: &RenewRequest, (held, contended): (Vec<bool>, Vec<bool>)| {
            for (key, (held, contended)) in
                renewal.claim.keys().iter().zip(held.iter().zip(contended))
            {
                if contended && *held {
                    self.contended(renewal.claim.token(), key.name());
                }
            }
            if held.len() == renewal.claim.keys().len() && held.iter().all(|held| *held) {
                self.claims.extend(renewal.claim.token(), renewal.ttl);
                return RenewOutcome::Renewed;
            }
            self.undo(&renewal.claim);
            RenewOutcome::NotHeld
        };
        let outcomes = renewals.iter().zip(checked);
        outcomes.map(|(renewal, checked)| Ok(renewed(renewal, checked?))).collect()
    }

    pub(super) async fn renew(
        self: &Arc<Self>,
        renewals: &[RenewRequest],
    ) -> Vec<Result<RenewOutcome, StoreError>> {
        let mut by_session = HashMap::<u64, (Arc<Session>, Vec<usize>)>::new();
        for (index, renewal) in renewals.iter().enumerate() {
            match self.claims.state(renewal.claim.token()) {
                Some(State::Held(held)) if !held.released_at_end && !held.on.is_over() => {
                    by_session.entry(held.on.id).or_insert_with(|| (held.on, vec![])).1.push(index);
                }
                _ => {}
            }
        }
        let batches = by_session.into_values().map(|(on, those)| async move {
            let batch: Vec<_> = those.iter().map(|&index| &renewals[index]).collect();
            let outcomes = self.renew_on(&on, &batch).await;
            those.into_iter().zip(outcomes).collect::<Vec<_>>()
        });
        let mut outcomes = vec![Ok(RenewOutcome::NotHeld); renewals.len()];
        for (index, outcome) in join_all(batches).await.into_iter().flatten() {
            outcomes[index] = outcome;
        }
        outcomes
    }
}
