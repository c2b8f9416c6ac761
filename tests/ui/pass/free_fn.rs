#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "product:<id>", ttl = "10s", retry = 10)]
async fn deduct(id: u64, quantity: u32) -> Result<(String, u32), Error> {
    let key = lockattr::current().unwrap().key().to_owned();
    Ok((key, quantity))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let deducted = manager.scope(deduct(42, 3)).await.unwrap();
    assert_eq!(deducted, ("product:42".to_owned(), 3));
    assert_eq!(manager.holder("product:42").await.unwrap(), None);
}
