//! Marks a lock as done: `mark_done.sql`.

use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

use super::parameters::{millis, name_of};
use super::queries::Query;
use super::statements::Statements;
use crate::store::Claim;

const MARK_DONE: &str = "select public.lockattr_mark_done_3($1, $2, $3)";

/// Marks the lock of this claim, for this long. Returns whether it is marked.
pub(super) struct MarkDone<'a>(pub(super) &'a Claim, pub(super) Duration);

impl Query for MarkDone<'_> {
    type Output = bool;

    async fn run(&self, to: &Statements, client: &Client) -> Result<bool, Error> {
        let Self(claim, lasts) = self;
        let (name, token, lasts) = (name_of(claim), claim.token().to_bytes(), millis(*lasts));
        let token = &token[..];
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&name, Type::BYTEA), (&token, Type::BYTEA), (&lasts, Type::INT8)];
        client.query_typed_one(&to.schema.sql(MARK_DONE), &params).await?.try_get(0)
    }
}
