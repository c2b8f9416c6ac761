use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", on_unavailable = unlocked)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
