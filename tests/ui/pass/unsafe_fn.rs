#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

/// # Safety
///
/// `quantity` must point to a `u32`.
#[distributed_lock(key = "product:<id>")]
async unsafe fn restock(id: u64, quantity: *const u32) -> Result<u32, Error> {
    assert_eq!(lockattr::current().unwrap().key(), format!("product:{id}"));
    // SAFETY: the caller guarantees it.
    Ok(unsafe { *quantity })
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    // SAFETY: it points to a `u32`.
    let restocking = unsafe { restock(42, &3) };
    assert_eq!(manager.scope(restocking).await.unwrap(), 3);
}
