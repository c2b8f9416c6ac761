use async_trait::async_trait;
use lockattr::{Error, distributed_lock};

#[async_trait]
trait Shop {
    async fn restock(&self, order: (u64, u32)) -> Result<u32, Error>;
}

struct Corner;

#[async_trait]
impl Shop for Corner {
    #[distributed_lock(key = "product:<id>")]
    async fn restock(&self, (id, quantity): (u64, u32)) -> Result<u32, Error> {
        println!("{id} restocked");
        Ok(quantity)
    }
}

fn main() {}
