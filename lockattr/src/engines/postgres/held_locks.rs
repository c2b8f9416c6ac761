//! For operators: lists the leases under a prefix, and takes a lock from its holder.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

use super::queries::Query;
use super::statements::Statements;
use crate::HeldLocks;
use crate::store::{HeldLockRows, StoreError};

/// The leases under names that begin with $1, ordered by their end. Locks of transactions are
/// missing: those have only a number, not a name.
const HELD_LOCKS: &str = "
    select name, value, (extract(epoch from ends - clock_timestamp()) * 1000000)::bigint, shared,
        coalesce((select waiting from public.lockattr_locks where lockattr_locks.name = held.name), 0)::bigint
    from (
        select name, value, ends, false as shared from public.lockattr_locks where token <> ''
        union all
        select name, value, ends, true from public.lockattr_holders
    ) as held
    where ends > clock_timestamp() and name >= $1 and substring(name for octet_length($1)) = $1
    order by ends";

const FORCE_RELEASE: &str = "select public.lockattr_force_release_3($1)";

/// Lists all leases under names that begin with this.
pub(super) struct HeldLocksQuery<'a>(pub(super) &'a str);

impl Query for HeldLocksQuery<'_> {
    type Output = HeldLocks;

    async fn run(&self, to: &Statements, client: &Client) -> Result<HeldLocks, Error> {
        let prefix = self.0.as_bytes();
        let params: [(&(dyn ToSql + Sync), Type); 1] = [(&prefix, Type::BYTEA)];
        let mut rows = HeldLockRows::of(self.0);
        for row in client.query_typed(&to.schema.sql(HELD_LOCKS), &params).await? {
            let (name, value) = (row.try_get(0)?, row.try_get(1)?);
            rows.add(name, value, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        }
        Ok(rows.held())
    }
}

/// Takes the lock of this name from its holders.
pub(super) struct ForceRelease<'a>(pub(super) &'a str);

impl Query for ForceRelease<'_> {
    type Output = i32;

    async fn run(&self, to: &Statements, client: &Client) -> Result<i32, Error> {
        let name = self.0.as_bytes();
        let params: [(&(dyn ToSql + Sync), Type); 1] = [(&name, Type::BYTEA)];
        client.query_typed_one(&to.schema.sql(FORCE_RELEASE), &params).await?.try_get(0)
    }
}

/// Reads the answer of `force_release.sql`.
pub(super) fn force_released(reply: i32) -> Option<Result<bool, StoreError>> {
    match reply {
        0 | 1 => Some(Ok(reply == 1)),
        process if process < 0 => {
            let pid = process.unsigned_abs();
            let sentence = format!(
                "a transaction holds the lock until it ends: roll it back, or end its session with \
                 `select pg_terminate_backend({pid})`"
            );
            Some(Err(StoreError::new(sentence).not_sent()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: any of the arms in `force_released`.
    #[test]
    fn a_transaction_is_named_and_nonsense_is_none() {
        assert!(force_released(1).unwrap().unwrap() && !force_released(0).unwrap().unwrap());
        let refused = force_released(-47).unwrap().unwrap_err().to_string();
        assert!(refused.contains("pg_terminate_backend(47)"), "{refused}");
        assert!(force_released(2).is_none());
    }
}
