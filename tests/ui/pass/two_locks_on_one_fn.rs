#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "shop:<shop>", lease = outer)]
#[distributed_lock(key = "product:<id>", lease = inner)]
async fn restock(shop: &str, id: u64) -> Result<(String, u32), Error> {
    Ok((format!("{} {} {shop}", outer.key(), inner.key()), inner.depth()))
}

// The same key twice: the inner lock re-enters the outer one.
#[distributed_lock(key = "product:<id>")]
#[distributed_lock(key = "product:<id>")]
async fn twice(id: u64) -> Result<(u64, u32), Error> {
    Ok((id, lockattr::current().unwrap().depth()))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let restocked = manager.scope(restock("corner", 42)).await.unwrap();
    assert_eq!(restocked, ("shop:corner product:42 corner".to_owned(), 1));
    assert_eq!(manager.scope(twice(42)).await.unwrap(), (42, 2));
}
