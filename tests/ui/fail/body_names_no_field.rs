use lockattr::{Error, distributed_lock};

struct Order {
    customer: u64,
}

#[distributed_lock(key = "customer:<order.customer>")]
async fn ship(order: Order) -> Result<u64, Error> {
    let shipped = order.custommer;
    println!("{shipped} shipped");
    Ok(shipped)
}

fn main() {}
