use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", wait = "0s", retry = 3)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
