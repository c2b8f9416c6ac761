use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", relese = background)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
