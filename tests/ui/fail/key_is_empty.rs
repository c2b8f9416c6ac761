use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
