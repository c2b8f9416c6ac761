use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", lease = &lease)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
