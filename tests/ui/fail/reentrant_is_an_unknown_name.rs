use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", reentrant = yes)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
