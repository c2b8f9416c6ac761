//! The stock in PostgreSQL: rows that reject the write of a former holder.

use deadpool_postgres::{Manager, Pool, PoolError};
use lockattr::FencingToken;
use tokio_postgres::NoTls;

use crate::failure::Anything;

/// `fence` is the greatest fencing token under which the row was written.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS shop_stock
        (product bigint PRIMARY KEY, quantity int NOT NULL, fence bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS shop_orders
        (product bigint NOT NULL, quantity int NOT NULL, fence bigint NOT NULL,
         at timestamptz NOT NULL DEFAULT now())";

/// Each hold writes once, under its own token. The comparison is `<`, so that no write counts
/// twice. The stock never falls below zero, even if it changed since the order read it.
const DEDUCT: &str = "
    UPDATE shop_stock SET quantity = quantity - $2, fence = $3
    WHERE product = $1 AND fence < $3 AND quantity >= $2
    RETURNING quantity";

const COUNT: &str = "
    INSERT INTO shop_stock AS row (product, quantity, fence) VALUES ($1, $2, $3)
    ON CONFLICT (product) DO UPDATE SET quantity = $2, fence = $3 WHERE row.fence < $3";

const ORDER: &str = "INSERT INTO shop_orders (product, quantity, fence) VALUES ($1, $2, $3)";

/// A connection pool; cheap to clone.
#[derive(Clone)]
pub(crate) struct Stock(Pool);

impl Stock {
    pub(crate) async fn open(url: &str) -> Result<Self, Anything> {
        // Enough for all requests that hold a lock; waiting ones need no connection.
        let pool = Pool::builder(Manager::new(url.parse()?, NoTls)).max_size(16).build()?;
        let connection = pool.get().await?;
        // One instance at a time, because concurrent `IF NOT EXISTS` statements can fail.
        let alone = "BEGIN; SELECT pg_advisory_xact_lock(hashtext('shop'))";
        connection.batch_execute(&format!("{alone}; {TABLES}; COMMIT")).await?;
        drop(connection);
        Ok(Self(pool))
    }

    /// The stock of a product, if the product is known.
    pub(crate) async fn quantity(&self, product: i64) -> Result<Option<i32>, PoolError> {
        let connection = self.0.get().await?;
        let ask =
            connection.prepare_cached("SELECT quantity FROM shop_stock WHERE product = $1").await?;
        Ok(connection.query_opt(&ask, &[&product]).await?.map(|row| row.get(0)))
    }

    /// Deducts `quantity` and writes the order, as the holder of the lock under `token`. Returns the
    /// remaining stock, or `None` if the row rejected the write.
    pub(crate) async fn deduct(
        &self,
        product: i64,
        quantity: i32,
        token: FencingToken,
    ) -> Result<Option<i32>, PoolError> {
        let mut connection = self.0.get().await?;
        let token = i64::from(token);
        // If dropped before the commit, it is rolled back.
        let both = connection.transaction().await?;
        let Some(row) = both.query_opt(DEDUCT, &[&product, &quantity, &token]).await? else {
            return Ok(None);
        };
        both.execute(ORDER, &[&product, &quantity, &token]).await?;
        both.commit().await?;
        Ok(Some(row.get(0)))
    }

    /// Sets the stock, as the holder of the lock under `token`. Returns whether the row accepted the
    /// write.
    pub(crate) async fn count(
        &self,
        product: i64,
        quantity: i32,
        token: FencingToken,
    ) -> Result<bool, PoolError> {
        let connection = self.0.get().await?;
        let written = connection.execute(COUNT, &[&product, &quantity, &i64::from(token)]).await?;
        Ok(written == 1)
    }

    /// Whether the database answers.
    pub(crate) async fn is_there(&self) -> Result<(), PoolError> {
        let connection = self.0.get().await?;
        connection.simple_query("SELECT 1").await?;
        Ok(())
    }
}
