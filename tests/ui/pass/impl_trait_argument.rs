#![deny(warnings)]

use std::fmt::Display;

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "product:<id>")]
async fn each(
    id: impl Display,
    quantities: impl IntoIterator<Item = u32>,
    then: impl AsyncFnOnce(u32) -> String,
) -> Result<String, Error> {
    assert_eq!(lockattr::current().unwrap().key(), "product:42");
    Ok(then(quantities.into_iter().sum()).await)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let summed = manager.scope(each("42", [1, 2], async |sum| sum.to_string()));
    assert_eq!(summed.await.unwrap(), "3");
}
