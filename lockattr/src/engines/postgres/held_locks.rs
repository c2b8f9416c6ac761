//! For operators: lists the leases under a prefix, and takes a lock from a holder.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

use super::queries::Query;
use super::statements::Statements;
use crate::store::{HeldLockRows, StoreError};
use crate::{HeldLocks, HolderId};

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

/// The holders of the lock $1; and, without a value, the server process whose transaction holds it until it ends.
const HOLDERS: &str = "
    select token, value, null::integer from public.lockattr_locks where name = $1 and token <> ''
    union all
    select token, value, null from public.lockattr_holders where name = $1
    union all
    select null, null, pid from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted and mode = 'ExclusiveLock'
        and classid::bigint << 32 | objid::bigint = public.lockattr_transaction_3($1)
        and database = (select oid from pg_database where datname = current_database())";

/// Releases the lock $1 in place of the holder with the token $2.
const RELEASE: &str =
    "call public.lockattr_release_3(array[1], array[$1], array[$2], array[0::bigint], null)";

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

/// Takes the lock of this name from the holder with this id.
pub(super) struct ForceRelease<'a>(pub(super) &'a str, pub(super) HolderId);

impl Query for ForceRelease<'_> {
    /// Whether that holder had the lock; or an error, if a transaction holds it.
    type Output = Result<bool, StoreError>;

    async fn run(&self, to: &Statements, client: &Client) -> Result<Self::Output, Error> {
        let name = self.0.as_bytes();
        let params: [(&(dyn ToSql + Sync), Type); 1] = [(&name, Type::BYTEA)];
        let mut transaction = None;
        for row in client.query_typed(&to.schema.sql(HOLDERS), &params).await? {
            let (token, value): (Option<&[u8]>, Option<&[u8]>) = (row.try_get(0)?, row.try_get(1)?);
            transaction = transaction.or(row.try_get(2)?);
            let Some(token) = token.filter(|_| value.map(HolderId::of) == Some(self.1)) else {
                continue;
            };
            let params: [(&(dyn ToSql + Sync), Type); 2] =
                [(&name, Type::BYTEA), (&token, Type::BYTEA)];
            let released = client.query_typed_one(&to.schema.sql(RELEASE), &params).await?;
            return Ok(Ok(released.try_get::<_, Vec<bool>>(0)? == [true]));
        }
        Ok(match transaction {
            Some(process) => Err(held_by_a_transaction(process)),
            None => Ok(false),
        })
    }
}

fn held_by_a_transaction(process: i32) -> StoreError {
    let sentence = format!(
        "a transaction holds the lock until it ends: roll it back, or end its session with \
         `select pg_terminate_backend({process})`"
    );
    StoreError::new(sentence).not_sent()
}
