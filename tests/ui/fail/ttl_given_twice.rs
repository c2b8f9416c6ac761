use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", ttl = "10s", ttl = "20s")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
