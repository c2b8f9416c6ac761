use async_trait::async_trait;
use lockattr::{Error, distributed_lock};

#[async_trait]
trait Shop {
    #[distributed_lock(key = "product:<product>")]
    async fn restock(&self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

fn main() {}
