//! The fencing token of a transaction, for tables that check it themselves.
//!
//! A variable of the session would outlive the transaction, so the token is a row that is never
//! committed. The variable only names the row (docs/decisions/0065).

#[cfg(feature = "sqlx")]
mod sqlx_client;

use std::ops::{Deref, DerefMut};

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Transaction};

use crate::FencingToken;

/// Removes the token. The row is named by its number, so nothing else is locked.
const UNSET: &str =
    "DELETE FROM lockattr_fence_tokens WHERE id = @lockattr_fence; SET @lockattr_fence = NULL";

/// Without it, the session's next write would look for the row that the rollback has undone.
const FORGET: &str = "SET @lockattr_fence = NULL";

/// An open transaction of a MySQL client, for [`FencedTransaction`].
///
/// The transactions of `mysql_async` and, with the feature `sqlx`, of sqlx 0.9 implement it. For
/// another client, wrap its transaction. If the wrapper is dropped, it must roll back:
///
/// ```
/// use lockattr::fence::MysqlTransaction;
///
/// # struct Connection;
/// # impl Connection {
/// #     async fn run(&mut self, _: &str) -> std::io::Result<()> { Ok(()) }
/// # }
/// # impl Drop for InMyClient<'_> { fn drop(&mut self) {} }
/// struct InMyClient<'a>(&'a mut Connection);
///
/// impl MysqlTransaction for InMyClient<'_> {
///     type Error = std::io::Error;
///
///     async fn run(&mut self, statements: &str) -> Result<(), std::io::Error> {
///         self.0.run(statements).await
///     }
///
///     async fn commit(self) -> Result<(), std::io::Error> {
///         self.0.run("COMMIT").await
///     }
///
///     async fn rollback(self) -> Result<(), std::io::Error> {
///         self.0.run("ROLLBACK").await
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a MySQL transaction that can have a fencing token",
    note = "pass a transaction of `mysql_async`, or of sqlx 0.9 with lockattr's feature `sqlx`; for \
            another client, implement `lockattr::fence::MysqlTransaction` for a wrapper of its \
            transaction",
    note = "for a PostgreSQL transaction, use `FencingToken::fence_in`"
)]
pub trait MysqlTransaction: Sized {
    /// The error of a statement.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Runs statements, separated by `;`, as one text without parameters.
    fn run(&mut self, statements: &str) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Commits.
    fn commit(self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Rolls back.
    fn rollback(self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

impl MysqlTransaction for Transaction<'_> {
    type Error = Error;

    async fn run(&mut self, statements: &str) -> Result<(), Error> {
        self.query_drop(statements).await
    }

    async fn commit(self) -> Result<(), Error> {
        Transaction::commit(self).await
    }

    async fn rollback(self) -> Result<(), Error> {
        Transaction::rollback(self).await
    }
}

/// A MySQL or MariaDB transaction that has a [`FencingToken`], for tables with the triggers that
/// [`lockattr fence sql`](crate::fence) makes.
///
/// The token ends with the transaction: [`commit`](Self::commit) removes it first, and a rollback,
/// also of a dropped value or a lost connection, undoes it. So the next user of a pooled connection does
/// not inherit it. The connection's default database must be that of the table. The lock may be in any
/// store.
///
/// Between [`new`](Self::new) and `commit`, run nothing that commits by itself, as DDL statements do:
/// the token would then last until `commit`, and if that is not called, until the session ends.
///
/// ```no_run
/// # async fn sell(pool: &mysql_async::Pool) -> Result<(), Box<dyn std::error::Error>> {
/// use lockattr::fence::FencedTransaction;
/// use lockattr::{LockManager, LockOptions};
/// use mysql_async::TxOpts;
/// use mysql_async::prelude::Queryable;
///
/// let manager = LockManager::connect("redis://127.0.0.1/").await?;
/// let guard = manager.acquire("product:42", LockOptions::new()).await?;
///
/// let transaction = pool.start_transaction(TxOpts::new()).await?;
/// let mut transaction = FencedTransaction::new(transaction, guard.fencing_token()).await?;
/// // Refused if a holder with a greater token has written the row.
/// transaction.query_drop("UPDATE stock SET quantity = quantity - 1 WHERE id = 42").await?;
/// transaction.commit().await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a transaction that is dropped is rolled back"]
pub struct FencedTransaction<T> {
    transaction: T,
}

impl<T: MysqlTransaction> FencedTransaction<T> {
    /// Gives an open transaction its token.
    ///
    /// # Errors
    ///
    /// The client's error, if the statement fails, as it does without the table `lockattr_fence_tokens`, which
    /// the migration creates. The transaction is then dropped, and so rolled back.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the transaction is dropped, and so rolled back.
    pub async fn new(mut transaction: T, token: FencingToken) -> Result<Self, T::Error> {
        let set = format!(
            "INSERT INTO lockattr_fence_tokens (token) VALUES ({token}); \
             SET @lockattr_fence = LAST_INSERT_ID()"
        );
        transaction.run(&set).await?;
        Ok(Self { transaction })
    }

    /// Removes the token and commits.
    ///
    /// # Errors
    ///
    /// The client's error. If it is the answer to the commit that was lost, the transaction may have
    /// been committed.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the transaction may have been committed; its token has ended.
    pub async fn commit(mut self) -> Result<(), T::Error> {
        self.transaction.run(UNSET).await?;
        self.transaction.commit().await
    }

    /// Rolls back, which also removes the token.
    ///
    /// # Errors
    ///
    /// The client's error.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the transaction is rolled back as soon as its connection is used again.
    pub async fn rollback(mut self) -> Result<(), T::Error> {
        let forgotten = self.transaction.run(FORGET).await;
        self.transaction.rollback().await.and(forgotten)
    }
}

/// The transaction, to run statements in it.
impl<T> Deref for FencedTransaction<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.transaction
    }
}

impl<T> DerefMut for FencedTransaction<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.transaction
    }
}
