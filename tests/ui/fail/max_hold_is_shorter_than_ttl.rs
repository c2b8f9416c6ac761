use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", ttl = "1m", max_hold = "59s")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
