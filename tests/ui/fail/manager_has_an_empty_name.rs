use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", manager = "")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
