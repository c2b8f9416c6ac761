use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", permits = 0)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
