use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<id>")]
trait Shop {
    async fn restock(&self, id: u64) -> Result<u64, Error>;
}

fn main() {}
