use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", permits = -1)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
