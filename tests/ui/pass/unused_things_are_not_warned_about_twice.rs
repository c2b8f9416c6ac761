#![deny(warnings, unused, let_underscore_drop)]
#![allow(clippy::needless_return)]
#![warn(clippy::pedantic)]
#![deny(elided_lifetimes_in_paths, unused_qualifications, unused_lifetimes, single_use_lifetimes)]

use lockattr::{Error, LockManager, distributed_lock};

struct Wrapper<'a>(&'a str);

#[distributed_lock(key = "product:<id>", lease = _lease)]
async fn restock(id: u64, _quantity: u32, _: &str) -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(key = "stock")]
async fn never_ends() -> Result<u32, Error> {
    loop {
        tokio::task::yield_now().await;
    }
}

#[distributed_lock(key = "stock")]
async fn unfinished() -> Result<u32, Error> {
    panic!("not written yet")
}

#[distributed_lock(key = "<wrapper.0>")]
async fn braces(wrapper: Wrapper<'_>) -> Result<usize, Error> {
    {
        return Ok(wrapper.0.len());
    }
}

#[distributed_lock(key = "stock", on_busy = skip)]
async fn empty() {}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    manager.scope(restock(42, 3, "tea")).await.unwrap();
    let limit = std::time::Duration::from_millis(20);
    assert!(tokio::time::timeout(limit, manager.scope(never_ends())).await.is_err());
    assert_eq!(manager.scope(braces(Wrapper("tea"))).await.unwrap(), 3);
    manager.scope(empty()).await;
    drop(unfinished());
}
