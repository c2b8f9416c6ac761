use lockattr::{Error, distributed_lock};

#[distributed_lock(key("stock"))]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
