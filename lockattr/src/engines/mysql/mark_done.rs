//! Marks a lock as done: `mark_done.sql`.

use std::time::Duration;

use super::failure::unexpected_reply;
use super::leases::Leases;
use super::request::{held, micros};
use super::requests::DatabaseRequest;
use crate::store::{Claim, ReleaseOutcome, StoreError};

impl Leases {
    pub(super) async fn mark_done(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        let key = claim.key();
        let params = (key.name().as_bytes(), claim.token().to_string(), micros(lasts));
        let mark = DatabaseRequest::Query {
            statement: "CALL lockattr_v2_mark_done(?, ?, ?)",
            params: params.into(),
            is_write: true,
        };
        let rows = self.query(self.slot(key), mark).await?;
        match held(rows).as_deref() {
            Some([true]) => Ok(ReleaseOutcome::Released),
            Some([false]) => Ok(ReleaseOutcome::NotHeld),
            _ => Err(unexpected_reply("`CALL lockattr_v2_mark_done`")),
        }
    }
}
