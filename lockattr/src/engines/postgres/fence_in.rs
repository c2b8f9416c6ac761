//! The fencing token of a transaction, for tables that check it themselves.

use super::transaction::PostgresTransaction;
use crate::FencingToken;

/// `true` ends the setting with the transaction: the next user of a pooled connection does not inherit
/// it.
const SET: &str =
    "select pg_catalog.length(pg_catalog.set_config('lockattr.fence', $1::pg_catalog.text, true))";

impl FencingToken {
    /// Makes this the token of an open PostgreSQL transaction, for tables with the triggers that
    /// [`lockattr fence sql`](crate::fence) makes.
    ///
    /// The token ends with the transaction, whether that is committed, rolled back or dropped, also
    /// behind a pooler such as `PgBouncer`. `ROLLBACK TO` an earlier savepoint removes it too. The lock may
    /// be in any store. Takes the transactions that
    /// [`acquire_in`](crate::LockManager::acquire_in) takes.
    ///
    /// ```no_run
    /// # async fn sell(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("redis://127.0.0.1/").await?;
    /// let guard = manager.acquire("product:42", LockOptions::new()).await?;
    ///
    /// let mut transaction = client.transaction().await?;
    /// guard.fencing_token().fence_in(&mut transaction).await?;
    /// // Refused if a holder with a greater token has written the row.
    /// transaction.execute("UPDATE stock SET quantity = quantity - 1 WHERE id = 42", &[]).await?;
    /// transaction.commit().await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The client's error, if the statement fails: roll the transaction back then.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the transaction may have the token or not.
    pub async fn fence_in<T: PostgresTransaction>(
        self,
        transaction: &mut T,
    ) -> Result<(), T::Error> {
        transaction.ask(SET, self.into()).await.map(drop)
    }
}
