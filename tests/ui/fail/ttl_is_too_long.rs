use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", ttl = "30days 1s")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
