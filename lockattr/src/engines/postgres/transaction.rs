//! Locks inside a transaction of the caller.

#[cfg(feature = "sqlx")]
mod sqlx_client;

use std::any::Any;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use super::listener::ENDED;
use super::queries::Query;
use super::statements::Statements;
use super::{PostgresSessionStore, PostgresStore};
use crate::FencingToken;
use crate::lock::error::causes;
use crate::store::{AnyStore, LockKey, StoreError};

/// In place of a server process: the lock is held, and the transaction did not wait.
pub(crate) const TAKEN: i32 = 0;

/// In place of a server process: the transaction would see data from before it had the lock.
pub(crate) const TOO_STRICT: i32 = -1;

/// An open transaction of a PostgreSQL client, for
/// [`LockManager::acquire_in`](crate::LockManager::acquire_in).
///
/// The transactions of `tokio-postgres` and, with the feature `sqlx`, of sqlx 0.9 implement it. For
/// another client, or another version of these, wrap its transaction:
///
/// ```
/// use lockattr::store::PostgresTransaction;
///
/// # struct Connection;
/// # impl Connection {
/// #     async fn value(&mut self, _: &str, _: i64) -> std::io::Result<i32> { Ok(0) }
/// # }
/// struct InMyClient<'a>(&'a mut Connection);
///
/// impl PostgresTransaction for InMyClient<'_> {
///     type Error = std::io::Error;
///
///     async fn ask(&mut self, statement: &str, number: i64) -> Result<i32, std::io::Error> {
///         self.0.value(statement, number).await
///     }
/// }
/// ```
///
/// Do not keep the statement prepared: its text differs from key to key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a PostgreSQL transaction that `acquire_in` can lock in",
    note = "pass a transaction of `tokio-postgres`, or of sqlx 0.9 with lockattr's feature `sqlx`; for \
            another client, implement `lockattr::store::PostgresTransaction` for a wrapper of its \
            transaction",
    note = "a connection outside of a transaction cannot hold the lock: begin a transaction",
    note = "MySQL has no lock that ends with a transaction: put `#[distributed_lock]` around the \
            transaction and compare the fencing token in the row, or lock the row with \
            `SELECT … FOR UPDATE`"
)]
pub trait PostgresTransaction {
    /// The error of a statement.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Runs `statement` in this transaction, with `number` as `$1` (a `bigint`), and returns the
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

/// Whether this is the server's error after a wait for a lock; `None` if it comes from a client that
/// is not known here, and so has no code.
pub(crate) fn wait_ended(error: &(dyn std::error::Error + 'static)) -> Option<bool> {
    let code = causes(error).find_map(code)?;
    Some(code.is_some_and(|code| code == SqlState::LOCK_NOT_AVAILABLE.code()))
}

/// The server's code for the error, if it comes from a known client: `Some(None)` if the server sent
/// none.
fn code(error: &(dyn std::error::Error + 'static)) -> Option<Option<String>> {
    #[cfg(feature = "sqlx")]
    if let Some(code) = sqlx_client::code(error) {
        return Some(code);
    }
    let error = error.downcast_ref::<Error>()?;
    Some(error.code().map(|code| code.code().to_owned()))
}

/// A store whose locks a transaction of the caller can hold.
pub(crate) trait InTransactions: Sync {
    /// The number of the advisory lock that the transaction takes.
    fn number<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, Result<i64, StoreError>>;

    /// The statement that takes it, and returns the server process that then holds it, or [`TAKEN`]
    /// or [`TOO_STRICT`]. If the statement itself waits, it does so for at most `wait`.
    fn statement(&self, key: &LockKey, wait: Option<Duration>) -> String;

    /// Whether a lease excludes others until the transaction has its lock. Otherwise the
    /// transaction waits in the queue with them.
    fn by_lease(&self) -> bool;

    /// How long the server may take to answer.
    fn response_timeout(&self) -> Duration;

    /// Whether the server process `pid` holds the advisory lock `number` in the database of this
    /// store. If so, also the fencing token, if this store counts acquisitions here.
    fn sees(
        &self,
        number: i64,
        pid: i32,
    ) -> BoxFuture<'_, Result<Option<Option<FencingToken>>, StoreError>>;
}

/// The store, if a transaction can hold its locks.
pub(crate) fn in_transactions(store: &AnyStore) -> Option<&dyn InTransactions> {
    let store: &dyn Any = &**store;
    let leases = store.downcast_ref::<PostgresStore>().map(|it| it as &dyn InTransactions);
    leases.or_else(|| store.downcast_ref::<PostgresSessionStore>().map(|it| it as _))
}

/// Whether the process $2 holds the lock $1.
pub(super) const HAS: &str = "exists (
    select from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
        and classid::bigint << 32 | objid::bigint = $1 and pid = $2
        and database = (select oid from pg_database where datname = current_database()))";

struct NumberQuery<'a>(&'a [u8]);

impl Query for NumberQuery<'_> {
    type Output = i64;

    async fn run(&self, to: &Statements, client: &Client) -> Result<i64, Error> {
        let statement = to.schema.sql("select public.lockattr_transaction_3($1)");
        client.query_typed_one(&statement, &[(&self.0, Type::BYTEA)]).await?.try_get(0)
    }
}

struct HasQuery(i64, i32);

impl Query for HasQuery {
    type Output = bool;

    async fn run(&self, _statements: &Statements, client: &Client) -> Result<bool, Error> {
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&self.0, Type::INT8), (&self.1, Type::INT4)];
        client.query_typed_one(&format!("select {HAS}"), &params).await?.try_get(0)
    }
}

impl InTransactions for PostgresStore {
    fn number<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(async move { self.slot(key).query(&NumberQuery(key.name().as_bytes())).await })
    }

    /// A commit notifies the waiters. A rollback drops the message. The transaction has a search path
    /// of its own, so each function has its schema.
    fn statement(&self, key: &LockKey, _wait: Option<Duration>) -> String {
        let channel = self.slots[0].config.schema.channel(ENDED);
        let name: String = key.name().bytes().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "select case when pg_catalog.pg_advisory_xact_lock($1) is not null
                 and pg_catalog.pg_notify('{channel}', '{name}') is not null
                 then pg_catalog.pg_backend_pid() end"
        )
    }

    fn by_lease(&self) -> bool {
        true
    }

    fn response_timeout(&self) -> Duration {
        self.slots[0].config.timing.response_timeout
    }

    fn sees(
        &self,
        number: i64,
        pid: i32,
    ) -> BoxFuture<'_, Result<Option<Option<FencingToken>>, StoreError>> {
        Box::pin(async move {
            let has = self.slots[0].query(&HasQuery(number, pid)).await?;
            Ok(has.then_some(None))
        })
    }
}

impl InTransactions for PostgresSessionStore {
    fn number<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(self.lock_number(key))
    }

    /// Restores the transaction's own limit afterwards. A transaction stricter than
    /// `read committed` sees the data from when its first statement began, before this one waited.
    fn statement(&self, _key: &LockKey, wait: Option<Duration>) -> String {
        let limit = wait.map_or(0, |wait| wait.as_millis().clamp(1, 2_000_000_000));
        let lock = match wait {
            Some(Duration::ZERO) => "pg_catalog.pg_try_advisory_xact_lock($1)",
            _ => "pg_catalog.pg_advisory_xact_lock($1) is not null",
        };
        format!(
            "with before as materialized (select pg_catalog.current_setting('lock_timeout') as own),
             set as materialized (
                 select pg_catalog.set_config('lock_timeout', '{limit}', true) from before
             ),
             locked as materialized (
                 select case when pg_catalog.starts_with(
                     pg_catalog.current_setting('transaction_isolation'), 'read'
                 ) then {lock} end as done from set
             )
             select case
                 when pg_catalog.set_config('lock_timeout', own, true) is null then null
                 when done is null then {TOO_STRICT}
                 when done then pg_catalog.pg_backend_pid()
                 else {TAKEN}
             end from locked, before"
        )
    }

    fn by_lease(&self) -> bool {
        false
    }

    fn response_timeout(&self) -> Duration {
        self.config().timing.response_timeout
    }

    fn sees(
        &self,
        number: i64,
        pid: i32,
    ) -> BoxFuture<'_, Result<Option<Option<FencingToken>>, StoreError>> {
        Box::pin(async move { Ok(self.count_if_held(number, pid).await?.map(Some)) })
    }
}
