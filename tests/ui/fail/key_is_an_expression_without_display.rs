use lockattr::{Error, distributed_lock};

struct Product {
    id: u64,
}

#[distributed_lock(key = product)]
async fn restock(product: Product) -> Result<u64, Error> {
    Ok(product.id)
}

fn main() {}
