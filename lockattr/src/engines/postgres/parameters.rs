//! Claims as parameters of statements.

use std::time::Duration;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

use super::requests::DatabaseRequest;
use crate::lock::century::at_most_a_century;
use crate::store::Claim;

/// Bytes: a PostgreSQL text cannot contain a zero byte, and compares by a language's rules.
pub(super) fn names_of(claim: &Claim) -> impl Iterator<Item = &[u8]> {
    claim.keys().iter().map(|key| key.name().as_bytes())
}

/// The name of a claim's single lock.
pub(super) fn name_of(claim: &Claim) -> &[u8] {
    claim.key().name().as_bytes()
}

/// Rounds down: the lease ends a little earlier, by less than the drift that each allows for.
pub(super) fn millis(ttl: Duration) -> i64 {
    i64::try_from(at_most_a_century(ttl).as_millis()).unwrap_or(i64::MAX).max(1)
}

/// Claims for `release.sql` and `renew.sql`.
#[derive(Default)]
pub(super) struct Claims<'a> {
    sizes: Vec<i32>,
    names: Vec<&'a [u8]>,
    tokens: Vec<[u8; 16]>,
    times: Vec<i64>,
}

impl<'a> Claims<'a> {
    pub(super) fn of(requests: &'a [DatabaseRequest]) -> Self {
        let mut claims = Self::default();
        for request in requests {
            match request {
                DatabaseRequest::Release(release) => {
                    let after = release.after;
                    claims.add(&release.claim, if after.is_zero() { 0 } else { millis(after) });
                }
                DatabaseRequest::RenewShared(renewal) => {
                    claims.add(&renewal.claim, millis(renewal.ttl));
                }
                _ => {}
            }
        }
        claims
    }

    fn add(&mut self, claim: &'a Claim, time: i64) {
        // A message has no room for more.
        self.sizes.push(i32::try_from(claim.keys().len()).unwrap_or(i32::MAX));
        self.names.extend(names_of(claim));
        self.tokens.push(claim.token().to_bytes());
        self.times.push(time);
    }

    /// Returns whether each claim held its locks.
    pub(super) async fn run(
        &self,
        statement: &Statement,
        client: &Client,
    ) -> Result<Vec<bool>, Error> {
        let tokens: Vec<_> = self.tokens.iter().map(|token| &token[..]).collect();
        let params: [&(dyn ToSql + Sync); 4] = [&self.sizes, &self.names, &tokens, &self.times];
        client.query_one(statement, &params).await?.try_get(0)
    }
}
