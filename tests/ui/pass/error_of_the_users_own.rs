#![deny(warnings)]

use lockattr::{LockManager, distributed_lock};

#[derive(Debug)]
enum OrderError {
    SoldOut,
    Lock(lockattr::Error),
}

impl From<lockattr::Error> for OrderError {
    fn from(error: lockattr::Error) -> Self {
        Self::Lock(error)
    }
}

#[distributed_lock(key = "product:<id>")]
async fn deduct(id: u64, quantity: u32) -> Result<u32, OrderError> {
    assert_eq!(id, 42);
    3u32.checked_sub(quantity).ok_or(OrderError::SoldOut)
}

#[tokio::test]
async fn compiles_and_runs() {
    let refused = deduct(42, 1).await;
    assert!(matches!(refused, Err(OrderError::Lock(lockattr::Error::NoManager))));
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(deduct(42, 1)).await.unwrap(), 2);
    assert!(matches!(manager.scope(deduct(42, 4)).await, Err(OrderError::SoldOut)));
}
