//! Orders: the attribute around a transaction.

use lockattr::distributed_lock;
use sqlx::PgPool;

use crate::failure::Failure;

/// Sells items, one order of a product at a time. Returns how many are left.
///
/// The lock is held for longer than the transaction, so the work between reading and writing, such as
/// a payment, keeps no connection of the pool busy. If the lease is lost meanwhile, the body is
/// dropped. If even that comes too late, because the process was paused, the row refuses the write:
/// it has the fencing token of a later holder.
#[distributed_lock(key = "product:<id>", ttl = "10s", wait = "2s", lease = lease)]
pub(crate) async fn place(pool: &PgPool, id: i64, quantity: i32) -> Result<i32, Failure> {
    let left = sqlx::query_scalar::<_, i32>("select quantity from stock where product = $1");
    let left = left.bind(id).fetch_optional(pool).await?.ok_or(Failure::NoSuchProduct)?;
    if quantity < 1 || left < quantity {
        return Err(Failure::SoldOut);
    }
    // Here the payment would be made. The next line is the last chance to stop without a write.
    lease.ensure_held()?;

    let token = lease.fencing_token();
    let mut transaction = pool.begin().await?;
    let sell = sqlx::query_scalar::<_, i32>(
        "update stock set quantity = quantity - $2, fence = $3
         where product = $1 and fence < $3 and quantity >= $2 returning quantity",
    );
    let sell = sell.bind(id).bind(quantity).bind(token).fetch_optional(&mut *transaction);
    let left = sell.await?.ok_or(Failure::Overtaken)?;
    let order = sqlx::query("insert into orders (product, quantity) values ($1, $2)");
    order.bind(id).bind(quantity).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(left)
}
