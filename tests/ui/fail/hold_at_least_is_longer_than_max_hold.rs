use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", max_hold = "1m", hold_at_least = "61s")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
