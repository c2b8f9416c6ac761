//! A team's own attribute with default options; `house/lib.rs` defines it.
//!
//! ```sh
//! cargo run --example house
//! ```

#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use lockattr::{Error, LockManager};
use lockattr_examples_house::orders_lock;

#[orders_lock(key = "order:<id>")]
async fn ship(id: u64) -> Result<String, Error> {
    let lease = lockattr::current().expect("the attribute holds it");
    Ok(format!("{} shipped, with {} s left", lease.key(), lease.remaining().as_secs()))
}

/// The nightly report may take longer. It uses the same manager.
#[orders_lock(key = "report", ttl = "120s", on_busy = skip)]
fn report() -> Option<String> {
    let lease = lockattr::current().expect("the attribute holds it");
    Some(format!("{} written, with {} s left", lease.key(), lease.remaining().as_secs()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    LockManager::builder().url("memory://").build()?.install_as("orders")?;
    println!("{}", report().ok_or("another node writes it")?);
    let runtime = tokio::runtime::Runtime::new()?;
    println!("{}", runtime.block_on(ship(7))?);
    Ok(())
}
