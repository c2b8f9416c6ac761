use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<prodcut>")]
async fn restock(product: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
