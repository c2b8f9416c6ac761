#![deny(warnings)]

use std::cell::Cell;

use lockattr::{LockManager, LockOptions, distributed_lock};

#[distributed_lock(key = "nightly", wait = "0s", on_busy = skip)]
async fn nightly(ran: &Cell<u32>) {
    ran.set(ran.get() + 1);
}

#[distributed_lock(key = "nightly", wait = "0s", on_busy = skip)]
async fn early(ran: &Cell<u32>) -> () {
    if ran.get() > 0 {
        return;
    }
    unreachable!("called second")
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let ran = Cell::new(0);
    manager.scope(nightly(&ran)).await;
    manager.scope(early(&ran)).await;
    let _held = manager.acquire("nightly", LockOptions::new()).await.unwrap();
    manager.scope(nightly(&ran)).await;
    assert_eq!(ran.get(), 1);
}
