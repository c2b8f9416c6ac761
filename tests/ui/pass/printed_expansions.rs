//! Compiles the pinned expansions as printed, and runs one.
#![allow(dead_code, unused)]
#![allow(clippy::all)] // Printed code looks handwritten to Clippy.

use lockattr::LockManager;

#[path = "../../../lockattr-macros/expansions/async_trait.rs"]
mod async_trait;
#[path = "../../../lockattr-macros/expansions/background.rs"]
mod background;
#[path = "../../../lockattr-macros/expansions/boxed_future.rs"]
mod boxed_future;
#[path = "../../../lockattr-macros/expansions/crate_path.rs"]
mod crate_path;
#[path = "../../../lockattr-macros/expansions/everything.rs"]
mod everything;
#[path = "../../../lockattr-macros/expansions/expression_key.rs"]
mod expression_key;
#[path = "../../../lockattr-macros/expansions/generics.rs"]
mod generics;
#[path = "../../../lockattr-macros/expansions/impl_block.rs"]
mod impl_block;
#[path = "../../../lockattr-macros/expansions/impl_future.rs"]
mod impl_future;
#[path = "../../../lockattr-macros/expansions/keys.rs"]
mod keys;
#[path = "../../../lockattr-macros/expansions/leader.rs"]
mod leader;
#[path = "../../../lockattr-macros/expansions/lease.rs"]
mod lease;
#[path = "../../../lockattr-macros/expansions/nested.rs"]
mod nested;
#[path = "../../../lockattr-macros/expansions/once_per.rs"]
mod once_per;
#[path = "../../../lockattr-macros/expansions/patterns.rs"]
mod patterns;
#[path = "../../../lockattr-macros/expansions/permits.rs"]
mod permits;
#[path = "../../../lockattr-macros/expansions/plain.rs"]
mod plain;
#[path = "../../../lockattr-macros/expansions/plain_fn.rs"]
mod plain_fn;
#[path = "../../../lockattr-macros/expansions/return_value.rs"]
mod return_value;
#[path = "../../../lockattr-macros/expansions/scheduled.rs"]
mod scheduled;
#[path = "../../../lockattr-macros/expansions/self_methods.rs"]
mod self_methods;
#[path = "../../../lockattr-macros/expansions/shared.rs"]
mod shared;
#[path = "../../../lockattr-macros/expansions/skip.rs"]
mod skip;
#[path = "../../../lockattr-macros/expansions/stream.rs"]
mod stream;
#[path = "../../../lockattr-macros/expansions/tokio_first.rs"]
mod tokio_first;
#[path = "../../../lockattr-macros/expansions/when_and_manager.rs"]
mod when_and_manager;

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    manager.scope(plain::deduct(42, 1)).await.unwrap();
    assert!(plain::deduct(42, 1).await.is_err(), "without a manager");
}
