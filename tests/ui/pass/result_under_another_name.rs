#![deny(warnings)]

use lockattr::{LockManager, distributed_lock};

type Res<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
type Nothing = ();
type Perhaps = Option<u32>;

#[distributed_lock(key = "number:<text>")]
async fn parse(text: &str) -> Res<u32> {
    Ok(text.parse()?)
}

#[distributed_lock(key = "nightly", on_busy = skip)]
async fn nightly() -> Nothing {}

#[distributed_lock(key = "nightly", on_busy = skip)]
async fn perhaps() -> Perhaps {
    Some(lockattr::current()?.depth())
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(parse("42")).await.unwrap(), 42);
    manager.scope(nightly()).await;
    assert_eq!(manager.scope(perhaps()).await, Some(1));
}
