#![deny(warnings)]

use std::fmt::Display;

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "stock")]
async fn labels(
    names: Vec<&str>,
) -> Result<(impl IntoIterator<Item = String>, impl Display), Error> {
    let count = names.len();
    Ok((names.into_iter().map(str::to_uppercase), count))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let (labels, count) = manager.scope(labels(vec!["a", "b"])).await.unwrap();
    assert_eq!(labels.into_iter().collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(count.to_string(), "2");
}
