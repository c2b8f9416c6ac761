use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", wait = false)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
