#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "outer:<id>")]
async fn outer(id: u64) -> Result<String, Error> {
    use lockattr::current;

    const STEP: u64 = 1;

    #[distributed_lock(key = "inner:<id>")]
    async fn inner(id: u64) -> Result<String, Error> {
        Ok(current().unwrap().key().to_owned())
    }

    let locked = async |id| inner(id).await;
    Ok(format!("{} {}", current().unwrap().key(), locked(id + STEP).await?))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(outer(1)).await.unwrap(), "outer:1 inner:2");
}
