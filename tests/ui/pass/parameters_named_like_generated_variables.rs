#![deny(warnings)]
#![allow(clippy::too_many_arguments)]

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(
    key = "<key>:<lockattr_call>:<lockattr_entry>:<error>",
    when = outcome == 0 && future == 0,
    on_busy = return(Ok(vec![lockattr_error, outcome, lockattr_lease, value]))
)]
async fn sum(
    key: u32,
    lockattr_lease: u32,
    lockattr_error: u32,
    value: u32,
    lockattr_call: u32,
    lockattr_entry: u32,
    outcome: u32,
    error: u32,
    output: u32,
    future: u32,
    body: u32,
    manager: u32,
    guard: u32,
) -> Result<Vec<u32>, Error> {
    assert_eq!(lockattr::current().unwrap().key(), "1:5:6:8");
    Ok(vec![
        key,
        lockattr_lease,
        lockattr_error,
        value,
        lockattr_call,
        lockattr_entry,
        outcome,
        error,
        output,
        future,
        body,
        manager,
        guard,
    ])
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let sum = manager.scope(sum(1, 2, 3, 4, 5, 6, 0, 8, 9, 0, 11, 12, 13)).await.unwrap();
    assert_eq!(sum, [1, 2, 3, 4, 5, 6, 0, 8, 9, 0, 11, 12, 13]);
}
