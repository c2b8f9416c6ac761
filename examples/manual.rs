//! The lease without the attribute: acquire, check, extend, release, and the contention error.
//!
//! ```text
//! cargo run --example manual
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    let manager = LockManager::builder().url(&url).service("manual").connect().await?;

    let options = LockOptions::new().ttl(Duration::from_secs(5)).function("main");
    let guard = manager.acquire("report:2026-11", options).await?;
    println!("holding {} with fencing token {}", guard.key(), guard.fencing_token());
    println!("may rely on it for {:?}", guard.remaining());

    // Before a step that cannot be undone: this checks the clock, without a request to the store.
    guard.ensure_held()?;

    guard.extend(Duration::from_secs(30)).await?;
    println!("extended: {:?}", guard.remaining());

    let second = LockOptions::new().wait(Duration::from_millis(200));
    match manager.acquire("report:2026-11", second).await {
        Err(busy @ Error::Contended { .. }) => println!("another caller gets: {busy}"),
        other => println!("unexpected: {other:?}"),
    }
    match manager.try_acquire("report:2026-11", LockOptions::new()).await? {
        None => println!("try_acquire says: not now"),
        Some(_) => println!("unexpected: granted twice"),
    }

    // `Ok` means that the lock was held to the end. Dropping the guard would release it without
    // that check.
    guard.release().await?;
    println!("free again: {:?}", manager.holder("report:2026-11").await?);
    Ok(())
}
