use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", retry_delay = 0.1)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
