use lockattr::{Error, distributed_lock};

struct Order {
    customer: u64,
}

impl Order {
    fn into_customer(self) -> u64 {
        self.customer
    }
}

#[distributed_lock(key = "customer:<order.into_customer()>")]
async fn ship(order: Order) -> Result<u64, Error> {
    Ok(order.customer)
}

fn main() {}
