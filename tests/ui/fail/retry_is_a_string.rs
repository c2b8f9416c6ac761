use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", retry = "10")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
