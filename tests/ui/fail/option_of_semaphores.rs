use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", permits = 3)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
