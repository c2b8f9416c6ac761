use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", ttl = seconds)]
async fn restock(seconds: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
