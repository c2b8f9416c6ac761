use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", on_unavailable = run_unlocked, lease = lease)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
