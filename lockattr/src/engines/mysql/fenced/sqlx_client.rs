//! Transactions of sqlx.

use sqlx::{AssertSqlSafe, Error, MySql, Transaction, raw_sql};

use super::MysqlTransaction;

/// Also for the savepoint that `begin` on a transaction returns.
///
/// ```no_run
/// # async fn sell(pool: &sqlx::MySqlPool, token: lockattr::FencingToken) -> Result<(), sqlx::Error> {
/// use lockattr::fence::FencedTransaction;
///
/// let mut transaction = FencedTransaction::new(pool.begin().await?, token).await?;
/// let sell = "UPDATE stock SET quantity = quantity - 1 WHERE id = 42";
/// sqlx::query(sell).execute(&mut **transaction).await?;
/// transaction.commit().await
/// # }
/// ```
impl MysqlTransaction for Transaction<'_, MySql> {
    type Error = Error;

    async fn run(&mut self, statements: &str) -> Result<(), Error> {
        raw_sql(AssertSqlSafe(statements)).execute(&mut **self).await.map(drop)
    }

    async fn commit(self) -> Result<(), Error> {
        Transaction::commit(self).await
    }

    async fn rollback(self) -> Result<(), Error> {
        Transaction::rollback(self).await
    }
}
