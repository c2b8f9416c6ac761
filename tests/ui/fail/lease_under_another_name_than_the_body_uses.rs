use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", lease = held)]
async fn restock() -> Result<u64, Error> {
    Ok(lease.fencing_token().into())
}

fn main() {}
