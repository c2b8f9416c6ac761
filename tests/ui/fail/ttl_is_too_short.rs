use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", ttl = "9ms")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
