use lockattr::{Error, distributed_lock};

struct Shop;

impl Shop {
    #[distributed_lock(key = "product:<id>", lease = lease, ttl = 10)]
    async fn restock(&mut self, id: u64, mut quantity: u32) -> Result<u64, Error> {
        quantity += 1;
        println!("{quantity}");
        Ok(lease.fencing_token().into())
    }
}

fn main() {
    drop(Shop.restock(42, 3));
}
