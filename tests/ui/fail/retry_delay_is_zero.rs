use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", retry_delay = "0ms")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
