use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<>")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
