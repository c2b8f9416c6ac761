use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", retry_delay = "1s", retry_delay = "1s")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
