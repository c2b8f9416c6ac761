use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", on_lost = "cancel")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
