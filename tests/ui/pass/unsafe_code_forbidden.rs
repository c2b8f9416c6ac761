//! The registry needs linker features that Rust calls unsafe, but the user's lints do not see them.

#![forbid(unsafe_code)]
#![deny(warnings, unused, rust_2018_idioms, nonstandard_style, missing_docs, unreachable_pub)]

use lockattr::{Error, assert_held, debug_assert_held, distributed_lock};

struct Desk;

impl Desk {
    #[distributed_lock(key = "desk:<ticket>", ttl = "10s")]
    async fn close<T: std::fmt::Display>(&self, ticket: T) -> Result<(), Error> {
        assert_held!("desk:<ticket>", "{} is closed", ticket);
        debug_assert_held!("desk:<ticket>");
        Ok(())
    }
}

#[tokio::test]
async fn compiles_and_runs() -> Result<(), Error> {
    let manager = lockattr::LockManager::connect("memory://").await?;
    manager.scope(Desk.close(17)).await
}
