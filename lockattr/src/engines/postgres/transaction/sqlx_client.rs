//! Transactions of sqlx.

use sqlx::{AssertSqlSafe, Error, Postgres, Transaction, query_scalar};

use super::PostgresTransaction;

/// Also for the savepoint that `begin` on a transaction returns.
///
/// There is no implementation for `PgConnection`: outside of a transaction, the lock would end
/// together with the statement that acquires it.
///
/// ```no_run
/// # async fn sell(locks: &lockattr::LockManager, pool: &sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let mut transaction = pool.begin().await?;
/// let token = locks.acquire_in(&mut transaction, "product:42").await?;
/// let sell = "UPDATE stock SET quantity = quantity - 1, fence = $1 \
///             WHERE id = 42 AND fence < $1 AND quantity >= 1";
/// let sold = sqlx::query(sell).bind(token).execute(&mut *transaction).await?;
/// if sold.rows_affected() == 0 {
///     return Err("sold out, or overtaken".into()); // rolls back, which releases the lock
/// }
/// transaction.commit().await?; // releases the lock
/// # Ok(())
/// # }
/// ```
impl PostgresTransaction for Transaction<'_, Postgres> {
    type Error = Error;

    async fn ask(&mut self, statement: &str, number: i64) -> Result<i32, Error> {
        // The statement has the lock's name in it. If sqlx kept it prepared, each key would take
        // the place of one of the caller's own statements.
        let ask = query_scalar(AssertSqlSafe(statement)).persistent(false);
        ask.bind(number).fetch_one(&mut **self).await
    }
}

/// The server's code for the error, if it comes from sqlx: `Some(None)` if the server sent none.
pub(super) fn code(error: &(dyn std::error::Error + 'static)) -> Option<Option<String>> {
    let error = error.downcast_ref::<Error>()?;
    let sent = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    Some(sent.map(Into::into))
}
