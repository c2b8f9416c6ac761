//! The functions of this program that need a lock: those that change the stock of a product.

use std::time::Duration;

use lockattr::distributed_lock;
use serde::Serialize;

use crate::failure::OrderError;
use crate::stock::Stock;

/// An accepted order.
#[derive(Debug, Serialize)]
pub(crate) struct Order {
    pub(crate) product: i64,
    pub(crate) quantity: i32,
    /// The remaining stock of the product.
    pub(crate) left: i32,
    /// The fencing token under which it was written.
    pub(crate) fence: u64,
}

/// Takes items of a product out of the stock: reads it, packs the order, and deducts
/// the items.
///
/// The lock allows one such call at a time. If the lease is lost meanwhile, the body is cancelled
/// and its transaction rolled back. If even that comes too late, because the process was paused,
/// the row rejects the write: it stores the fencing token of its last writer. The row also rejects
/// an order that is larger than the stock.
#[distributed_lock(key = "product:<product>", ttl = "10s", wait = "2s", lease = lease)]
pub(crate) async fn deduct(
    stock: &Stock,
    product: i64,
    quantity: i32,
    packing: Duration,
) -> Result<Order, OrderError> {
    if quantity < 1 {
        return Err(OrderError::NoQuantity);
    }
    let there = stock.quantity(product).await?.ok_or(OrderError::NoSuchProduct(product))?;
    if there < quantity {
        return Err(OrderError::SoldOut { product, left: there });
    }
    // Stands for printing, another service, or a long computation.
    tokio::time::sleep(packing).await;
    // The last moment at which the order can still be abandoned.
    lease.ensure_held()?;
    let token = lease.fencing_token();
    match stock.deduct(product, quantity, token).await? {
        Some(left) => Ok(Order { product, quantity, left, fence: token.get() }),
        None => Err(OrderError::Overtaken(product)),
    }
}

/// Sets the stock of a product. It has the same key, so no order changes the stock meanwhile.
#[distributed_lock(key = "product:<product>", ttl = "10s", wait = "2s", lease = lease)]
pub(crate) async fn count(stock: &Stock, product: i64, quantity: i32) -> Result<(), OrderError> {
    if quantity < 0 {
        return Err(OrderError::NoQuantity);
    }
    match stock.count(product, quantity, lease.fencing_token()).await? {
        true => Ok(()),
        false => Err(OrderError::Overtaken(product)),
    }
}
