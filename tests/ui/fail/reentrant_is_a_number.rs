use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", reentrant = 0)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
