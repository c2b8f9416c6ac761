use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<ids>")]
async fn restock(ids: &[u64]) -> Result<(), Error> {
    Ok(())
}

fn main() {}
