use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", mode = exclusive, permits = 3)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
