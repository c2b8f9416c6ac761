//! Methods, by every kind of `self`.

use std::sync::Arc;

use lockattr::Error;

/// A shop in a region.
#[derive(Debug)]
pub struct Shop {
    region: String,
    orders: Vec<u64>,
}

impl Shop {
    /// Looks at the last order.
    #[lockattr::distributed_lock(key = "shop:<self.region>")]
    pub async fn last(&self) -> Result<Option<&u64>, Error> {
        Ok(self.orders.last())
    }

    /// Adds an order.
    #[lockattr::distributed_lock(key = "shop:<self.region>:<order>")]
    pub async fn add(&mut self, order: u64) -> Result<&mut Vec<u64>, Error> {
        self.orders.push(order);
        Ok(&mut self.orders)
    }

    /// Closes the shop.
    #[lockattr::distributed_lock(key = "shop:<self.region>")]
    pub(crate) async fn close(self: Arc<Self>) -> Result<Arc<Self>, Error> {
        Ok(self)
    }
}
