#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

fn memory() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

#[distributed_lock(key = "program", manager = &memory(), lease = lease)]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    assert_eq!(lease.key(), "program");
    tokio::task::yield_now().await;
    lease.ensure_held()
}

#[test]
fn compiles_and_runs() -> Result<(), Error> {
    main()
}
