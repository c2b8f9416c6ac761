#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "product:<id>")]
#[tracing::instrument(skip(quantity), fields(product = id), err)]
async fn restock(id: u64, quantity: u32) -> Result<(u32, String), Error> {
    Ok((quantity, lockattr::current().unwrap().key().to_owned()))
}

struct Shop;

impl Shop {
    #[distributed_lock(key = "name:<name>")]
    #[tracing::instrument(skip_all, ret)]
    async fn rename(&mut self, name: &str) -> Result<(), Error> {
        drop(name.to_owned());
        Ok(())
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let restocked = manager.scope(restock(42, 3)).await.unwrap();
    assert_eq!(restocked, (3, "product:42".to_owned()));
    manager.scope(Shop.rename("corner")).await.unwrap();
}
