#![deny(warnings, missing_docs, clippy::must_use_candidate)]
#![allow(clippy::non_minimal_cfg)] // Examples of conditions that are on and off.
//! Uses attributes whose effects would be missing if the macro dropped them.

use lockattr::{Error, LockManager, distributed_lock};

/// Docs above.
#[distributed_lock(key = "product:<id>")]
/// Docs below, and [links](Error).
#[must_use = "it is somebody's stock"]
#[inline]
#[allow(unused_variables, clippy::unused_async)]
#[cfg(all())]
pub async fn restock(
    id: u64,
    #[allow(unused_mut)] mut quantity: u32,
    #[cfg(any())] missing: Missing,
    #[cfg(all())] present: u32,
) -> Result<u32, Error> {
    #![doc = "Docs inside."]
    #![allow(dead_code)]
    fn never_called() {}
    let unused = 1;
    Ok(quantity + present)
}

#[cfg(any())]
#[distributed_lock(key = "nothing:<here>")]
async fn not_here() -> Missing {}

#[deprecated = "use `restock`"]
#[distributed_lock(key = "product:<id>")]
/// Old.
pub async fn refill(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(restock(42, 3, 4)).await.unwrap(), 7);
    #[expect(deprecated)]
    let refilling = refill(42);
    assert_eq!(manager.scope(refilling).await.unwrap(), 42);
}
