#![deny(warnings)]

use std::fmt::Display;

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "product:<id>")]
fn restock<T: Display + Send>(id: T) -> impl Future<Output = Result<String, Error>> + Send {
    async move { Ok(format!("{} {id}", lockattr::current().unwrap().key())) }
}

#[distributed_lock(key = "name:<name>")]
fn length<'a>(name: &'a str) -> impl Future<Output = Result<usize, Error>> + use<'a> {
    let length = name.len();
    async move { Ok(length) }
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(assert_send(restock("42"))).await.unwrap(), "product:42 42");
    assert_eq!(manager.scope(length("tea")).await.unwrap(), 3);
}
