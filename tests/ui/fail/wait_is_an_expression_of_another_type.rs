use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", wait = 2 * 3)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
