use lockattr::{Error, distributed_lock};

struct Order {
    customer: u64,
}

#[distributed_lock(key = "customer:<order.client>")]
async fn ship(order: &Order) -> Result<u64, Error> {
    Ok(order.customer)
}

fn main() {}
