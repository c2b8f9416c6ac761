//! A nightly job on three nodes: each starts it, one runs it, and all know which one did.
//!
//! ```text
//! cargo run --example nightly                                        # three tasks, in memory
//! LOCKATTR_URL=redis://127.0.0.1/ cargo run --example nightly        # three processes
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

mod fleet;

use std::sync::Arc;
use std::time::Duration;

use fleet::Anything;
use lockattr::store::MemoryStore;
use lockattr::{Error, LockManager, distributed_lock};
use tokio::task::JoinSet;
use tokio::time::sleep;

const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];
const NIGHT: &str = "2026-11-20";

/// By how much the clocks of two nodes differ: the second node starts the job this much later. The
/// job is shorter.
const SKEW: Duration = Duration::from_millis(500);

/// Sends the night's invoices, once in the fleet; `None` on the nodes that did not run it.
///
/// * `wait = "0s", on_busy = skip`: a node that finds the lock held does not wait.
/// * `once_for`: after a run that ended `Ok`, this night is done. Without it, the node with the
///   latest clock would find the lock free again, and send everything a second time. A run that
///   failed leaves the night open, and the next node tries it.
/// * `max_hold`: a job that hangs is cancelled at its await, and does not block the next night.
/// * `ttl`: how long no other node takes over from a node that crashed. Its successor starts from
///   the beginning, so each invoice has to be marked when it is sent.
#[distributed_lock(
    key = "nightly:invoices",
    once_for = "<night>",
    wait = "0s",
    on_busy = skip,
    ttl = "10s",
    max_hold = "1h"
)]
async fn send_invoices(night: &str, node: &str) -> Result<Option<u32>, Error> {
    println!("{node}: sends the invoices of {night}");
    sleep(SKEW / 2).await;
    Ok(Some(1200))
}

/// One node at two o'clock at night.
async fn two_o_clock(manager: LockManager, node: &str) -> Result<(), Error> {
    let late = NODES.iter().take_while(|name| **name != node).count();
    sleep(SKEW * u32::try_from(late).unwrap_or_default()).await;
    match manager.scope(send_invoices(NIGHT, node)).await? {
        Some(invoices) => println!("{node}: {invoices} invoices sent"),
        None => match manager.holder(format!("nightly:invoices:{NIGHT}")).await? {
            Some(holder) => println!("{node}: nothing to do, this night is that of {holder}"),
            None => println!("{node}: nothing to do, and an operator reopened the night"),
        },
    }
    manager.shutdown().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Anything> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    if let Some(node) = std::env::args().nth(1) {
        let manager = LockManager::builder().url(&url).service(&node).connect().await?;
        return Ok(two_o_clock(manager, &node).await?);
    }
    println!("02:00 on {} nodes", NODES.len());
    if !fleet::is_memory(&url) {
        fleet::run(&NODES, &[]).await?;
        return Ok(());
    }
    let memory = Arc::new(MemoryStore::new());
    let mut nodes = JoinSet::new();
    for node in NODES {
        let manager = LockManager::builder().store(memory.clone()).service(node).build()?;
        nodes.spawn(two_o_clock(manager, node));
    }
    while let Some(node) = nodes.join_next().await {
        node??;
    }
    Ok(())
}
