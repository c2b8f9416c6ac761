#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

#[derive(Debug, PartialEq)]
struct NotBoxFuture(u32);

#[derive(Debug, PartialEq)]
struct MyBoxFuture<T>(T);

#[derive(Debug, PartialEq)]
struct NotBoxStream(u32);

type AnyBoxFuture = Result<u32, Error>;

#[distributed_lock(key = "value")]
fn value() -> Result<NotBoxFuture, Error> {
    Ok(NotBoxFuture(1))
}

#[distributed_lock(key = "generic")]
fn generic() -> Result<MyBoxFuture<u32>, Error> {
    Ok(MyBoxFuture(2))
}

#[distributed_lock(key = "option", on_busy = skip)]
fn option() -> Option<NotBoxStream> {
    Some(NotBoxStream(3))
}

#[distributed_lock(key = "stream")]
async fn stream() -> Result<NotBoxStream, Error> {
    Ok(NotBoxStream(4))
}

#[distributed_lock(key = "alias")]
fn alias() -> AnyBoxFuture {
    Ok(5)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(stream()).await.unwrap(), NotBoxStream(4));
    let plain = tokio::task::spawn_blocking(move || {
        manager.scope_blocking(|| {
            assert_eq!(value().unwrap(), NotBoxFuture(1));
            assert_eq!(generic().unwrap(), MyBoxFuture(2));
            assert_eq!(option(), Some(NotBoxStream(3)));
            assert_eq!(alias().unwrap(), 5);
        });
    });
    plain.await.unwrap();
}
