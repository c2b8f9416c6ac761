#![deny(warnings)]

use lockattr::{Error, LockManager, LockOptions, distributed_lock};

async fn region(id: u64) -> Result<String, Error> {
    tokio::task::yield_now().await;
    Ok(format!("region {id}"))
}

async fn open(id: u64) -> bool {
    id > 0
}

#[distributed_lock(
    key = "stock:<region(id).await?>",
    wait = "0s",
    when = open(id).await,
    on_busy = return(Ok(format!("busy in {}", region(id).await?)))
)]
async fn restock(id: u64) -> Result<String, Error> {
    Ok(lockattr::current().map_or("unlocked".to_owned(), |lease| lease.key().to_owned()))
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(assert_send(restock(1))).await.unwrap(), "stock:region 1");
    assert_eq!(manager.scope(restock(0)).await.unwrap(), "unlocked");
    let _held = manager.acquire("stock:region 1", LockOptions::new()).await.unwrap();
    assert_eq!(manager.scope(restock(1)).await.unwrap(), "busy in region 1");
}
