use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<id>")]
async fn restock(id: u64, quantity: u32) -> Result<u32, Error> {
    quantity += 1;
    Ok(quantity)
}

fn main() {}
