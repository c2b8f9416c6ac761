//! Reentrancy: nested calls enter again, concurrent branches take turns, a spawned task does not
//! inherit the lock.
//!
//! ```text
//! cargo run --example reentrant
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::time::Duration;

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "account:<id>")]
async fn close(id: u64) -> Result<(), Error> {
    show("close");
    // The same key three levels down: no deadlock, and no request to the store.
    transfer_rest(id).await?;

    println!("two branches of a join! are two claimants; they take turns:");
    let (left, right) = tokio::join!(book(id, "left"), book(id, "right"));
    left.and(right)?;

    println!("a spawned task is a new call chain:");
    let stranger = tokio::spawn(audit(id)).await;
    println!("  without inherit: {}", outcome(stranger));
    let member = tokio::spawn(lockattr::inherit(audit(id))).await;
    println!("  with inherit:    {}", outcome(member));
    Ok(())
}

#[distributed_lock(key = "account:<id>")]
async fn transfer_rest(id: u64) -> Result<(), Error> {
    show("transfer_rest");
    book(id, "the rest").await
}

#[distributed_lock(key = "account:<id>")]
async fn book(id: u64, what: &str) -> Result<(), Error> {
    show(&format!("book {what}: begins"));
    tokio::time::sleep(Duration::from_millis(20)).await;
    show(&format!("book {what}: ends"));
    Ok(())
}

#[distributed_lock(key = "account:<id>", wait = "100ms")]
async fn audit(id: u64) -> Result<u32, Error> {
    Ok(lockattr::current().map_or(0, |lease| lease.depth()))
}

fn show(what: &str) {
    if let Some(lease) = lockattr::current() {
        println!("  depth {}, token {}: {what}", lease.depth(), lease.fencing_token());
    }
}

fn outcome(joined: Result<Result<u32, Error>, tokio::task::JoinError>) -> String {
    match joined {
        Ok(Ok(depth)) => format!("entered at depth {depth}"),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    LockManager::connect(&url).await?.install()?;
    close(7).await
}
