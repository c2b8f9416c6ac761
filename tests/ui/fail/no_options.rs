use lockattr::{Error, distributed_lock};

#[distributed_lock]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
