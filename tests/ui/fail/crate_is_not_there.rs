use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", crate = ::lock_attributes)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
