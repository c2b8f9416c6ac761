#![deny(warnings)]

use std::pin::Pin;

use lockattr::{Error, LockManager, distributed_lock};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type LocalBoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

#[distributed_lock(key = "name:<name>")]
fn length<'a>(name: &'a str) -> BoxFuture<'a, Result<usize, Error>> {
    Box::pin(async move { Ok(name.len()) })
}

#[distributed_lock(key = "nightly", on_busy = skip)]
fn nightly(name: &str) -> self::LocalBoxFuture<'_, ()> {
    let name = std::rc::Rc::new(name);
    Box::pin(async move {
        assert_eq!(*name, "tea");
        assert_eq!(lockattr::current().unwrap().key(), "nightly");
    })
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(length("tea")).await.unwrap(), 3);
    manager.scope(nightly("tea")).await;
}
