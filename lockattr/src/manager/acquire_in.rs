//! A lock inside a transaction of the caller.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::LockManager;
use crate::engines::postgres::{InTransactions, TAKEN, TOO_STRICT, in_transactions, wait_ended};
use crate::hold::chain;
use crate::lock::key::LockKey;
use crate::platform::entropy::random_fraction;
use crate::store::{PostgresTransaction, StoreError};
use crate::{Error, FencingToken, LockOptions};

impl LockManager {
    /// Acquires the lock of `key` inside an open transaction of the caller, until that is committed
    /// or rolled back.
    ///
    /// For callers that already have a transaction in the database that stores this manager's locks
    /// (`postgres://…`, in either form): of tokio-postgres, of sqlx with the feature `sqlx`, or of a
    /// client for which you implement [`PostgresTransaction`]. The lock excludes, and is excluded by, every other holder
    /// of the key: through the attribute, through [`acquire`](Self::acquire), or in another
    /// transaction. It has no guard, no TTL and no renewal: if the connection ends, the server
    /// rolls the transaction back. The call waits as the manager's `wait` and `retry` say.
    ///
    /// | what is locked | use |
    /// |---|---|
    /// | an existing row, if every writer locks it | `SELECT … FOR UPDATE`, without lockattr |
    /// | something that has no row yet, or many, or none in this database, and is only changed in transactions | this |
    /// | anything that takes longer than a transaction should | the attribute |
    ///
    /// The lock also follows savepoints: `ROLLBACK TO` an earlier savepoint releases it. A commit
    /// notifies the next waiter at once; after a rollback the waiter notices within a second.
    ///
    /// **Isolation.** In `READ COMMITTED`, PostgreSQL's default, each statement sees what the
    /// previous holder has committed. A stricter transaction sees the state at its first statement.
    /// With leases, this call has to be that statement; with `lock=session`, which waits inside the
    /// transaction, a stricter transaction is refused.
    ///
    /// Two transactions that lock two keys in opposite orders wait for each other until the `wait`
    /// of one ends, which returns `Contended`; with `lock=session` the database detects the
    /// deadlock and aborts one of them. There, a `wait` that ends also aborts the transaction: it
    /// can only be rolled back.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). [`Error::Store`] also if the transaction fails or its connection
    /// does not answer: roll it back then. And
    /// [`Error::InvalidOptions`] if the manager's store is not PostgreSQL, the transaction is in
    /// another database or not open, it is stricter than `READ COMMITTED` with `lock=session`, or this call
    /// chain already holds the key.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the transaction may hold the lock: roll it back.
    ///
    /// ```no_run
    /// # async fn sell(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use lockattr::LockManager;
    ///
    /// let manager = LockManager::connect("postgres://app@db.example/shop").await?;
    ///
    /// let mut transaction = client.transaction().await?;
    /// let token = i64::from(manager.acquire_in(&mut transaction, "product:42").await?);
    /// let sell = "UPDATE stock SET quantity = quantity - 1, fence = $1 \
    ///             WHERE id = 42 AND fence < $1 AND quantity >= 1";
    /// if transaction.execute(sell, &[&token]).await? == 0 {
    ///     return Err("sold out, or overtaken".into()); // rolls back, which releases the lock
    /// }
    /// transaction.commit().await?; // releases the lock
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire_in<T: PostgresTransaction>(
        &self,
        transaction: &mut T,
        key: impl AsRef<str>,
    ) -> Result<FencingToken, Error> {
        self.shared.core.watchdog.check_here()?;
        let key = self.key(key.as_ref())?;
        let store = self.shared.core.store().clone();
        let Some(store) = in_transactions(&store) else {
            return Err(Error::InvalidOptions(
                "`acquire_in` locks in a PostgreSQL transaction, but this manager's store is not \
                 PostgreSQL: connect it to the transaction's database (`postgres://…`)"
                    .into(),
            ));
        };
        if chain::find(&self.shared.core, key.as_str()).is_some() {
            return Err(Error::InvalidOptions(format!(
                "this call chain already holds `{key}`, and the transaction would wait for that \
                 hold: lock the key only in the transaction, or only outside of it"
            )));
        }
        let number = store.number(&key).await.map_err(|error| error.about(key.as_str()))?;
        match store.by_lease() {
            true => self.by_lease(store, transaction, key, number).await,
            false => self.queued(store, transaction, key, number).await,
        }
    }

    /// Excludes other callers by a lease until the transaction has the lock.
    async fn by_lease<T: PostgresTransaction>(
        &self,
        store: &dyn InTransactions,
        transaction: &mut T,
        key: LockKey,
        number: i64,
    ) -> Result<FencingToken, Error> {
        let mut options = LockOptions::new().resolve(&self.shared.settings)?;
        // The lock must be released to the store, which then grants it to the transaction.
        options.by_store = true;
        let guard = self.acquire_new(&options, Arc::new([key.clone()])).await?;
        let statement = store.statement(&key, None);
        // Nothing else has the lock, so the server answers at once, or not at all. Meanwhile the lease
        // is renewed over other connections.
        let pid = match timeout(options.ttl, transaction.ask(&statement, number)).await {
            Ok(pid) => pid.map_err(|error| failed(&key, error))?,
            Err(_) => return Err(silent(&key)),
        };
        // If the lease is still held here, the lock now belongs to the transaction.
        guard.ensure_held()?;
        let seen = store.sees(number, pid).await.map_err(|error| error.about(key.as_str()))?;
        let token = guard.fencing_token();
        match guard.release().await {
            // If the release got no answer, the lease expires; the transaction has the lock.
            Ok(()) | Err(Error::Store { .. }) => {}
            Err(error) => return Err(error),
        }
        seen.map(|_| token).ok_or_else(|| elsewhere(&key))
    }

    /// Lets the transaction wait in the server's own queue.
    async fn queued<T: PostgresTransaction>(
        &self,
        store: &dyn InTransactions,
        transaction: &mut T,
        key: LockKey,
        number: i64,
    ) -> Result<FencingToken, Error> {
        let wait_budget = LockOptions::new().resolve(&self.shared.settings)?.wait_budget;
        let began = Instant::now();
        let wait = match wait_budget.is_once() {
            true => Duration::ZERO,
            // As long as the retries of a queued caller elsewhere would take.
            false => {
                whole(wait_budget.start(began).wait_deadline(began, random_fraction()) - began)
            }
        };
        let contended = || {
            let (key, waited) = (key.as_str().to_owned(), began.elapsed());
            Error::Contended { key, attempts: 1, waited, holder: None }
        };
        let statement = store.statement(&key, Some(wait));
        let limit = wait.saturating_add(store.response_timeout());
        let pid = match timeout(limit, transaction.ask(&statement, number)).await {
            Ok(Ok(TOO_STRICT)) => return Err(too_strict(&key)),
            Ok(Ok(TAKEN)) => return Err(contended()),
            Ok(Ok(pid)) => pid,
            Ok(Err(error)) => {
                let waited_too_long = match wait_ended(&error) {
                    Some(ended) => ended,
                    // Another client's error: if the store answers, the server has ended the wait.
                    None => {
                        let asked = || store.sees(number, TAKEN);
                        !wait.is_zero() && began.elapsed() >= wait && asked().await.is_ok()
                    }
                };
                return Err(if waited_too_long { contended() } else { failed(&key, error) });
            }
            Err(_) => return Err(silent(&key)),
        };
        let seen = store.sees(number, pid).await.map_err(|error| error.about(key.as_str()))?;
        seen.flatten().ok_or_else(|| elsewhere(&key))
    }
}

/// In whole milliseconds, the server's unit.
fn whole(wait: Duration) -> Duration {
    Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

/// The server does not answer on the transaction's connection.
fn silent(key: &LockKey) -> Error {
    StoreError::new("the caller's transaction: the server does not answer").about(key.as_str())
}

fn failed(key: &LockKey, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let source = StoreError::new(format!("the caller's transaction: {why}")).with_source(error);
    source.about(key.as_str())
}

fn too_strict(key: &LockKey) -> Error {
    Error::InvalidOptions(format!(
        "the transaction for `{key}` is stricter than `read committed`: with `lock=session` it \
         waits for the lock inside, and would then see the state from before the lock was \
         granted; begin it as `read committed`, or use leases (leave `lock=session` out of the \
         URL)"
    ))
}

fn elsewhere(key: &LockKey) -> Error {
    Error::InvalidOptions(format!(
        "the transaction for `{key}` is not in the database that stores this manager's locks, or \
         no transaction is open on its connection, so it would exclude no other holder: connect \
         the manager to the transaction's database, and begin the transaction first"
    ))
}
