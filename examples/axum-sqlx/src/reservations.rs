//! Reservations: a lock inside the service's own transaction.

use crate::App;
use crate::failure::Failure;

/// How many reservations a product may have.
pub(crate) const MOST: i64 = 10;

/// Adds a reservation, unless the product has enough of them. Returns its number.
///
/// The lock guards the number of rows, and there is no row yet that a transaction could lock. It ends
/// with the transaction, so no lease can be lost in between, and no fencing token is needed. While it
/// waits, it keeps a connection of the pool, so it is for work as short as this.
pub(crate) async fn add(app: &App, id: i64) -> Result<i64, Failure> {
    let mut transaction = app.pool.begin().await?;
    app.database_locks.acquire_in(&mut transaction, format!("reservations:{id}")).await?;
    let count =
        sqlx::query_scalar::<_, i64>("select count(*) from reservations where product = $1");
    let count = count.bind(id).fetch_one(&mut *transaction).await?;
    if count >= MOST {
        return Err(Failure::FullyReserved);
    }
    let add = sqlx::query("insert into reservations (product) values ($1)");
    add.bind(id).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(count + 1)
}
