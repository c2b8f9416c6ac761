use lockattr::{Error, LockManager, distributed_lock};

struct Shop {
    locks: LockManager,
}

impl Shop {
    #[distributed_lock(key = "stock", manager = self.locks)]
    async fn restock(&self) -> Result<(), Error> {
        Ok(())
    }
}

fn main() {}
