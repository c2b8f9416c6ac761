//! Locks inside a transaction of the caller's own.

use std::any::Any;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use super::queries::{Query, Statements};
use super::{PostgresSessionStore, PostgresStore, in_one_step};
use crate::FencingToken;
use crate::store::{AnyStore, LockKey, StoreError};

/// The channel on which a transaction that is committed says whose lock it had.
pub(super) const ENDED: &str = "lockattr_ended";

/// No server process: somebody has the lock, and was not waited for.
pub(crate) const TAKEN: i32 = 0;

/// No server process: the transaction would see what was there before it had the lock.
pub(crate) const TOO_STRICT: i32 = -1;

/// An open transaction of some PostgreSQL client, for
/// [`LockManager::acquire_in`](crate::LockManager::acquire_in).
///
/// That of `tokio-postgres` is one. For another client it is written in a few lines, around its
/// transaction; with sqlx:
///
/// ```ignore
/// struct InSqlx<'a, 'c>(&'a mut sqlx::Transaction<'c, sqlx::Postgres>);
///
/// impl lockattr::store::PostgresTransaction for InSqlx<'_, '_> {
///     type Error = sqlx::Error;
///
///     async fn ask(&mut self, statement: &str, number: i64) -> Result<i32, sqlx::Error> {
///         sqlx::query_scalar(statement).bind(number).fetch_one(&mut **self.0).await
///     }
/// }
///
/// manager.acquire_in(&mut InSqlx(&mut transaction), "product:42").await?;
/// ```
pub trait PostgresTransaction {
    /// What goes wrong with a statement.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Runs `statement` in this transaction, with `number` in the place of `$1` (a `bigint`): the
    /// one value, an `integer`, of its one row.
    fn ask(
        &mut self,
        statement: &str,
        number: i64,
    ) -> impl Future<Output = Result<i32, Self::Error>> + Send;
}

impl PostgresTransaction for tokio_postgres::Transaction<'_> {
    type Error = Error;

    async fn ask(&mut self, statement: &str, number: i64) -> Result<i32, Error> {
        self.query_typed_one(statement, &[(&number, Type::INT8)]).await?.try_get(0)
    }
}

/// A store whose locks a transaction of the caller's can have.
pub(crate) trait InTransactions: Sync {
    /// The number of the advisory lock that the transaction takes.
    fn number<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, Result<i64, StoreError>>;

    /// The statement that takes it, and returns the server process that has it then, or [`TAKEN`] or
    /// [`TOO_STRICT`]. Where the transaction waits for it by itself, it does so for `wait` at most.
    fn statement(&self, key: &LockKey, wait: Option<Duration>) -> String;

    /// Whether a lease keeps others out until the transaction has its lock; else it waits in the queue
    /// with them.
    fn by_lease(&self) -> bool;

    /// Whether the server process `pid` has the advisory lock `number` in the database of this
    /// store: then the number of the acquisition, if it is counted here.
    fn sees(
        &self,
        number: i64,
        pid: i32,
    ) -> BoxFuture<'_, Result<Option<Option<FencingToken>>, StoreError>>;
}

/// The store as one whose locks a transaction can have, if it is.
pub(crate) fn in_transactions(store: &AnyStore) -> Option<&dyn InTransactions> {
    let store: &dyn Any = &**store;
    let leases = store.downcast_ref::<PostgresStore>().map(|it| it as &dyn InTransactions);
    leases.or_else(|| store.downcast_ref::<PostgresSessionStore>().map(|it| it as _))
}

/// Whether that process has that lock.
pub(super) const HAS: &str = "exists (
    select from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
        and classid::bigint << 32 | objid::bigint = $1 and pid = $2
        and database = (select oid from pg_database where datname = current_database()))";

struct NumberQuery<'a>(&'a [u8]);

impl Query for NumberQuery<'_> {
    type Answer = i64;

    async fn ask(&self, _to: &Statements, client: &Client) -> Result<i64, Error> {
        let statement = "select lockattr_transaction_1($1)";
        client.query_typed_one(statement, &[(&self.0, Type::BYTEA)]).await?.try_get(0)
    }
}

struct HasQuery(i64, i32);

impl Query for HasQuery {
    type Answer = bool;

    async fn ask(&self, _to: &Statements, client: &Client) -> Result<bool, Error> {
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&self.0, Type::INT8), (&self.1, Type::INT4)];
        client.query_typed_one(&format!("select {HAS}"), &params).await?.try_get(0)
    }
}

impl InTransactions for PostgresStore {
    fn number<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(
            async move { in_one_step(self.slot(key), &NumberQuery(key.name().as_bytes())).await },
        )
    }

    /// A commit tells those in the queue; the message is no process's if the transaction is rolled back.
    fn statement(&self, key: &LockKey, _wait: Option<Duration>) -> String {
        let name: String = key.name().bytes().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "select case when pg_advisory_xact_lock($1) is not null
                 and pg_notify('{ENDED}', '{name}') is not null then pg_backend_pid() end"
        )
    }

    fn by_lease(&self) -> bool {
        true
    }

    fn sees(
        &self,
        number: i64,
        pid: i32,
    ) -> BoxFuture<'_, Result<Option<Option<FencingToken>>, StoreError>> {
        Box::pin(async move {
            let has = in_one_step(&self.slots[0], &HasQuery(number, pid)).await?;
            Ok(has.then_some(None))
        })
    }
}

impl InTransactions for PostgresSessionStore {
    fn number<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(self.number_of(key))
    }

    /// The transaction's own limit comes back behind it. A stricter transaction than `read committed`
    /// sees what was there when its first statement began, which would be before this one has waited.
    fn statement(&self, _key: &LockKey, wait: Option<Duration>) -> String {
        let limit = wait.map_or(0, |wait| wait.as_millis().clamp(1, 2_000_000_000));
        let lock = match wait {
            Some(Duration::ZERO) => "pg_try_advisory_xact_lock($1)",
            _ => "pg_advisory_xact_lock($1) is not null",
        };
        format!(
            "with before as materialized (select current_setting('lock_timeout') as own),
             set as materialized (select set_config('lock_timeout', '{limit}', true) from before),
             locked as materialized (
                 select case
                     when current_setting('transaction_isolation') like 'read%' then {lock}
                 end as done from set
             )
             select case
                 when set_config('lock_timeout', own, true) is null then null
                 when done is null then {TOO_STRICT}
                 when done then pg_backend_pid()
                 else {TAKEN}
             end from locked, before"
        )
    }

    fn by_lease(&self) -> bool {
        false
    }

    fn sees(
        &self,
        number: i64,
        pid: i32,
    ) -> BoxFuture<'_, Result<Option<Option<FencingToken>>, StoreError>> {
        Box::pin(async move { Ok(self.counts(number, pid).await?.map(Some)) })
    }
}
