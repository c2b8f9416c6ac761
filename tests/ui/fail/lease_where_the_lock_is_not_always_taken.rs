use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", when = quantity > 0, lease = lease)]
async fn restock(quantity: u32) -> Result<(), Error> {
    Ok(())
}

fn main() {}
