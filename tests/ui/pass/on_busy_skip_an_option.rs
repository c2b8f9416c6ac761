#![deny(warnings)]

use lockattr::{LockManager, LockOptions, distributed_lock};

#[distributed_lock(key = "nightly", wait = "0s", on_busy = skip)]
async fn nightly(night: &str) -> Option<&str> {
    Some(night.split_once(' ')?.0)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(nightly("new moon")).await, Some("new"));
    assert_eq!(manager.scope(nightly("new")).await, None);
    let _held = manager.acquire("nightly", LockOptions::new()).await.unwrap();
    assert_eq!(manager.scope(nightly("new moon")).await, None);
}
