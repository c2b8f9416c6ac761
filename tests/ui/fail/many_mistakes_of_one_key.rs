use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "<shop><>:<ids +>%<region>:{id}:<product")]
async fn restock(shop: &str, id: u64, product: u64) -> Result<u64, Error> {
    println!("{product} restocked in {shop}");
    Ok(id)
}

fn main() {}
