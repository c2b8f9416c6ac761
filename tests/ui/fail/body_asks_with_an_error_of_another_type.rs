use lockattr::{Error, distributed_lock};

struct SoldOut;

#[distributed_lock(key = "product:<id>")]
async fn restock(id: u64) -> Result<u64, Error> {
    Err(SoldOut)?;
    Ok(id)
}

fn main() {}
