use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", crate = "lockattr")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
