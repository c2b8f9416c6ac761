#![deny(warnings)]
#![allow(clippy::erasing_op)]

use lockattr::{Error, LockManager, LockOptions, distributed_lock};

// If `lockattr_error` were a variable of the expansion, this would not have the type `u32`.
#[distributed_lock(
    key = "stock",
    wait = "0s",
    on_busy = return(Ok(lockattr_error + lockattr_call + value))
)]
async fn count(lockattr_error: u32, lockattr_call: u32, value: u32) -> Result<u32, Error> {
    Ok((lockattr_error + lockattr_call + value) * 0)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let held = manager.acquire("stock", LockOptions::new()).await.unwrap();
    assert_eq!(manager.scope(count(1, 2, 3)).await.unwrap(), 6);
    held.release().await.unwrap();
    assert_eq!(manager.scope(count(1, 2, 3)).await.unwrap(), 0);
}
