//! Renews locks by asking whether they are still held: they have no TTL at the server.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;

use super::super::failure::Failure;
use super::Inner;
use super::claims::State;
use super::session::Session;
use crate::store::{LockKey, RenewOutcome, RenewRequest, StoreError};

impl Inner {
    /// Renews the claims of one session, in one statement.
    pub(super) async fn renew_on(
        &self,
        on: &Session,
        renewals: &[&RenewRequest],
    ) -> Vec<Result<RenewOutcome, StoreError>> {
        let names: Vec<_> =
            renewals.iter().flat_map(|it| it.claim.keys()).map(LockKey::name).collect();
        let (held, contended) = match on.held_and_contended(&names).await {
            Ok(outcome) => outcome,
            Err(Failure { error, .. }) => return vec![Err(error); renewals.len()],
        };
        let mut outcomes = held.into_iter().zip(contended);
        let mut renewed = |renewal: &RenewRequest| {
            let mut all = true;
            for key in renewal.claim.keys() {
                let (held, contended) = outcomes.next().unwrap_or_default();
                all &= held;
                if contended && held {
                    self.contended(renewal.claim.token(), key.name());
                }
            }
            if all {
                self.claims.extend(renewal.claim.token(), renewal.ttl);
                return RenewOutcome::Renewed;
            }
            self.undo(&renewal.claim);
            RenewOutcome::NotHeld
        };
        renewals.iter().map(|renewal| Ok(renewed(renewal))).collect()
    }

    pub(super) async fn renew(
        &self,
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
