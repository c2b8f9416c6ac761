//! The attribute of the README.

/// What the shop says of a failed order.
#[derive(Debug)]
pub struct OrderError;

impl From<lockattr::Error> for OrderError {
    fn from(_: lockattr::Error) -> Self {
        Self
    }
}

/// Takes `quantity` off the shelf.
#[lockattr::distributed_lock(key = "product:<id>", ttl = "10s", retry = 10)]
pub async fn deduct(id: u64, quantity: u32) -> Result<(), OrderError> {
    if quantity == 0 {
        return Err(OrderError);
    }
    Ok(())
}
