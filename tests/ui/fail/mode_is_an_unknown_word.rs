use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", mode = read)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
