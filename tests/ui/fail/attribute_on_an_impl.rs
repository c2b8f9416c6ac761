use lockattr::{Error, distributed_lock};

struct Shop;

#[distributed_lock(key = "product:<id>")]
impl Shop {
    async fn restock(&self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

fn main() {}
