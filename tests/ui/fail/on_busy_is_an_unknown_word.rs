use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", on_busy = ignore)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
