use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", manager = 1)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
