//! Patterns among the parameters.

use lockattr::Error;

/// An order.
#[derive(Debug)]
pub struct Order {
    customer: u64,
    items: [u32; 2],
}

/// Adds up an order.
#[lockattr::distributed_lock(key = "{<customer>}:<items[0]>:<left + right>")]
pub async fn total(
    Order { customer, items }: Order,
    (left, right): (u32, u32),
    mut sums: Vec<u32>,
    _: &str,
) -> Result<Vec<u32>, Error> {
    sums.extend(items);
    sums.push(left + right);
    Ok(sums)
}
