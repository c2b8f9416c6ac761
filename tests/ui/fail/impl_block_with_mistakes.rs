use lockattr::{Error, distributed_lock};

struct Shop;

#[distributed_lock(ttl = 30, lease = lease)]
impl Shop {
    #[distributed_lock(key = "stock")]
    async fn restock(&self) -> Result<(), Error> {
        Ok(())
    }
}

fn main() {
    drop(Shop.restock());
}
