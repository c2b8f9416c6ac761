use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", colour = "red")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
