use lockattr::{Error, distributed_lock};

struct Shop;

impl Shop {
    #[distributed_lock(key = "", ttl = "1ms", fair = true)]
    const fn restock(&self) -> Result<(), Error> {
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    Shop.restock()
}
