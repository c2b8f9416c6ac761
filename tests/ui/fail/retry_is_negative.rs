use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", retry = -1)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
