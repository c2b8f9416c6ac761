use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", release = false)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
