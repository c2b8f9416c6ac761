use lockattr::{Error, distributed_lock};

trait Shop {
    #[distributed_lock(key = "product:<id>")]
    async fn restock(&self, id: u64) -> Result<u64, Error>;
}

fn main() {}
