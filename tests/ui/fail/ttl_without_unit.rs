use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", ttl = "10")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
