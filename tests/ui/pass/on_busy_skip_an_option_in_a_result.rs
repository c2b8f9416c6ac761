#![deny(warnings)]

use lockattr::{Error, LockManager, LockOptions, distributed_lock};

#[distributed_lock(key = "nightly", wait = "0s", on_busy = skip)]
async fn nightly(night: &str) -> Result<Option<usize>, Error> {
    Ok(night.find(' '))
}

#[tokio::test]
async fn compiles_and_runs() {
    assert!(matches!(nightly("new moon").await, Err(Error::NoManager)));
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(nightly("new moon")).await.unwrap(), Some(3));
    let _held = manager.acquire("nightly", LockOptions::new()).await.unwrap();
    assert_eq!(manager.scope(nightly("new moon")).await.unwrap(), None);
}
