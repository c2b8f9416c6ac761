#![deny(warnings)]
#![allow(clippy::async_yields_async)]

use std::sync::Arc;

use lockattr::{Error, LockManager, distributed_lock, inherit};

struct Shop {
    name: String,
}

#[distributed_lock(
    key = "shop:<shop.name>",
    on_busy = return(Ok(shop.name.len())),
    when = !shop.name.is_empty()
)]
async fn open<T: Send>(shop: Arc<Shop>, extra: T, names: &[&str]) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    drop(extra);
    Ok(shop.name.len() + names.len())
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let shop = Arc::new(Shop { name: "corner".to_owned() });
    let task = manager
        .scope(async {
            // `Cell` is `Send`, but not `Sync`.
            tokio::spawn(inherit(async { open(shop, std::cell::Cell::new(1), &["a"]).await }))
        })
        .await;
    assert_eq!(task.await.unwrap().unwrap(), 7);
}
