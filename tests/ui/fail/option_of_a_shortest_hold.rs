use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", hold_at_least = "1m")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
