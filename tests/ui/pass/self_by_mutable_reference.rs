#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

struct Shop {
    locks: LockManager,
    stock: u32,
}

impl Shop {
    #[distributed_lock(key = "stock:<self.stock>", manager = &self.locks)]
    async fn restock(&mut self, quantity: u32) -> Result<&mut u32, Error> {
        assert_eq!(lockattr::current().unwrap().key(), "stock:1");
        self.stock += quantity;
        Ok(&mut self.stock)
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let locks = LockManager::connect("memory://").await.unwrap();
    let mut shop = Shop { locks, stock: 1 };
    *shop.restock(3).await.unwrap() *= 2;
    assert_eq!(shop.stock, 8);
}
