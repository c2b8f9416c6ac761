#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};
use lockattr_ui_libraries::cases;

#[distributed_lock(key = "below:<id>")]
#[cases]
async fn below(
    #[case] id: u64,
    #[case] (left, _): (u64, u64),
    #[future]
    #[allow(unused_mut)]
    mut sum: u64,
) -> Result<u64, Error> {
    Ok(id + left + sum)
}

#[cases]
#[distributed_lock(key = "above:<id>")]
fn above(#[case] id: u64, #[case] (_, _): (u64, u64)) -> Result<u64, Error> {
    Ok(id)
}

#[distributed_lock(key = "leader:<id>", lead = true)]
#[cases]
async fn leader(#[case] id: u64) -> Result<u64, Error> {
    Ok(id)
}

/// What the compiler knows goes on working.
#[distributed_lock(key = "own", on_busy = skip)]
fn own(
    #[expect(unused_variables)] unused: u64,
    #[expect(unused_mut)] mut never_changed: u64,
    #[cfg_attr(all(), expect(unused_variables))] (left, right): (u64, u64),
    #[expect(clippy::needless_pass_by_value)] name: String,
    #[cfg_attr(any(), case)] of_no_macro: u64,
    #[cfg(any())] missing: Missing,
) -> Option<u64> {
    assert_eq!(name, "tea");
    Some(never_changed + right + of_no_macro)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(below(1, (2, 3), 4)).await.unwrap(), 7);
    assert_eq!(manager.scope(leader(5)).await.unwrap(), 5);
    tokio::task::spawn_blocking(move || {
        manager.scope_blocking(|| {
            assert_eq!(above(42, (1, 2)).unwrap(), 42);
            assert_eq!(own(1, 2, (3, 4), "tea".to_owned(), 5), Some(11));
        });
    })
    .await
    .unwrap();
}
