use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", when = quantity)]
async fn restock(quantity: u32) -> Result<(), Error> {
    Ok(())
}

fn main() {}
