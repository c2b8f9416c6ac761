use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", retry = 4294967296)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
