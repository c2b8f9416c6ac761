use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock"; ttl = "10s")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
