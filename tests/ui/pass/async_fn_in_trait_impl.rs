#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

trait Shop {
    fn restock(&mut self, id: u64) -> impl Future<Output = Result<&str, Error>> + Send;
}

struct Corner(String);

impl Shop for Corner {
    #[distributed_lock(key = "product:<id>")]
    async fn restock(&mut self, id: u64) -> Result<&str, Error> {
        self.0 = format!("{} {id}", lockattr::current().unwrap().key());
        Ok(&self.0)
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let mut shop = Corner(String::new());
    assert_eq!(manager.scope(shop.restock(42)).await.unwrap(), "product:42 42");
}
