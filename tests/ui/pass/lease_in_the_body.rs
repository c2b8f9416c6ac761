#![deny(warnings)]

use std::time::Duration;

use lockattr::{Error, Lease, LockManager, distributed_lock};

async fn append(lease: &Lease, line: &str) -> Result<u64, Error> {
    lease.ensure_held()?;
    assert_eq!(line, "tea");
    Ok(lease.fencing_token().into())
}

#[distributed_lock(key = "log:<line>", lease = held)]
async fn log(line: &str) -> Result<(u64, Lease), Error> {
    held.extend(Duration::from_secs(20)).await?;
    let token = append(held, line).await?;
    Ok((token, held.clone()))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let (token, lease) = manager.scope(log("tea")).await.unwrap();
    assert!(token > 0);
    assert_eq!(lease.key(), "log:tea");
    assert!(lease.ensure_held().is_err(), "released with the call");
}
