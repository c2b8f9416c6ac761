use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", hold_at_least = 60)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
