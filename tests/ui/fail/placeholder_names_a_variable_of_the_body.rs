use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "customer:<customer>")]
async fn ship(order: (u64, u64)) -> Result<u64, Error> {
    let (customer, _) = order;
    Ok(customer)
}

fn main() {}
