#![deny(warnings)]

use lockattr::{Error, LockManager, LockOptions, distributed_lock};

// Both the body and `on_busy` move `name`: only one of them runs.
#[distributed_lock(key = "name:<name>", wait = "0s", on_busy = return(Ok(name)))]
async fn rename(name: String, suffix: &str) -> Result<String, Error> {
    let mut name = name;
    name.push_str(suffix);
    Ok(name)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(rename("tea".to_owned(), "pot")).await.unwrap(), "teapot");
    let _held = manager.acquire("name:tea", LockOptions::new()).await.unwrap();
    assert_eq!(manager.scope(rename("tea".to_owned(), "pot")).await.unwrap(), "tea");
}
