//! The functions of the whole program that need a lock: what changes the stock of a product.

use std::time::Duration;

use lockattr::distributed_lock;
use serde::Serialize;

use crate::failure::OrderError;
use crate::stock::Stock;

/// An order that was taken.
#[derive(Debug, Serialize)]
pub(crate) struct Order {
    pub(crate) product: i64,
    pub(crate) quantity: i32,
    /// What is left of the product.
    pub(crate) left: i32,
    /// The fencing token it was written under.
    pub(crate) fence: u64,
}

/// Takes pieces of a product off the stock: it is read, packed from, and written back.
///
/// Under the lock no two do that at once. If the lease is lost on the way the body is dropped, and the
/// transaction with it. If even that comes too late, because the process stood still, the row refuses
/// the write: it knows the fencing token of who wrote last.
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
    // The printer, the other service, the long computation.
    tokio::time::sleep(packing).await;
    // The last moment at which it costs nothing to stop.
    lease.ensure_held()?;
    let (left, token) = (there - quantity, lease.fencing_token());
    if !stock.write(product, left, token, Some(quantity)).await? {
        return Err(OrderError::Overtaken(product));
    }
    Ok(Order { product, quantity, left, fence: token.get() })
}

/// Counts a product anew. The same key: not while somebody takes from it.
#[distributed_lock(key = "product:<product>", ttl = "10s", wait = "2s", lease = lease)]
pub(crate) async fn count(stock: &Stock, product: i64, quantity: i32) -> Result<(), OrderError> {
    if quantity < 0 {
        return Err(OrderError::NoQuantity);
    }
    match stock.write(product, quantity, lease.fencing_token(), None).await? {
        true => Ok(()),
        false => Err(OrderError::Overtaken(product)),
    }
}
