use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", mode = "shared")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
