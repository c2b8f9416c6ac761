#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "shard:<SHARD>:<values[0]>")]
async fn sum<const SHARD: usize, const N: usize>(values: [u64; N]) -> Result<[u64; N], Error> {
    assert_eq!(lockattr::current().unwrap().key(), "shard:3:7");
    Ok(values.map(|value| value + 1))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(sum::<3, 2>([7, 8])).await.unwrap(), [8, 9]);
}
