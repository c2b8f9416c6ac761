#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

fn memory() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

#[tokio::main(flavor = "current_thread")]
#[tracing::instrument]
#[distributed_lock(key = "program", manager = &memory(), lease = lease)]
async fn main() -> Result<(), Error> {
    assert_eq!(lease.key(), "program");
    tokio::task::yield_now().await;
    lease.ensure_held()
}

#[tokio::test]
#[tracing::instrument]
#[distributed_lock(key = "test-database", manager = &memory())]
async fn restocks() -> Result<(), Error> {
    tokio::task::yield_now().await;
    Ok(())
}

#[test]
fn compiles_and_runs() -> Result<(), Error> {
    main()
}
