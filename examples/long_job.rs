//! A job longer than its lease: the watchdog renews it, and signals when it cannot.
//!
//! ```text
//! cargo run --example long_job
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, distributed_lock};

/// Two seconds of work under a lease of half a second.
#[distributed_lock(key = "import", ttl = "500ms", lease = lease)]
async fn import() -> Result<u32, Error> {
    for chunk in 1..=4 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        // Check the lease before a step that cannot be undone.
        lease.ensure_held()?;
        println!("  chunk {chunk} written, the lease runs for {:?} more", lease.remaining());
    }
    Ok(4)
}

/// The same, but `max_hold` limits the hold to a second.
#[distributed_lock(key = "import", ttl = "500ms", max_hold = "1s")]
async fn capped_import() -> Result<u32, Error> {
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!("  never printed: the body was dropped at its await");
    Ok(0)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    let manager = LockManager::connect(&url).await?;
    manager.install()?;

    println!("renewed while it runs:");
    println!("  {} chunks", import().await?);

    println!("cancelled when it may hold no longer:");
    if let Err(error) = capped_import().await {
        println!("  {error}");
    }

    println!("by hand, beside the work:");
    let fixed = LockOptions::new().ttl(Duration::from_millis(300)).renew(false);
    let guard = manager.acquire("import", fixed).await?;
    tokio::select! {
        () = guard.lost() => println!("  lost: {:?}", guard.ensure_held().map_err(|e| e.to_string())),
        () = tokio::time::sleep(Duration::from_secs(5)) => println!("  never printed"),
    }
    if let Err(error) = guard.release().await {
        println!("  and the release reports it too: {error}");
    }
    manager.shutdown().await;
    Ok(())
}
