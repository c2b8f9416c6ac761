#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

struct Shop {
    locks: LockManager,
    regions: Vec<&'static str>,
}

impl Shop {
    fn region(&self, index: usize) -> &str {
        self.regions[index]
    }

    #[distributed_lock(key = "stock:<self.region(index)>", manager = &self.locks)]
    async fn restock(&self, index: usize) -> Result<String, Error> {
        Ok(format!("{} {}", lockattr::current().unwrap().key(), self.region(index)))
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let locks = LockManager::connect("memory://").await.unwrap();
    let shop = Shop { locks, regions: vec!["eu", "us"] };
    assert_eq!(shop.restock(1).await.unwrap(), "stock:us us");
}
