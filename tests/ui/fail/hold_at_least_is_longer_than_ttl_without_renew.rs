use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", ttl = "10s", renew = false, hold_at_least = "1m")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
