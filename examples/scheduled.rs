//! A nightly job that every node starts and only one runs: `on_busy = skip`.
//!
//! ```text
//! cargo run --example scheduled
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::MemoryStore;
use lockattr::{Error, LockManager, distributed_lock};

/// Sends the night's invoices, once in the fleet; `None` on the nodes that came second.
#[distributed_lock(key = "job:invoices:<night>", ttl = "30s", wait = "0s", on_busy = skip)]
async fn send_invoices(night: &str, node: &str) -> Result<Option<u32>, Error> {
    println!("  {node} sends the invoices of {night}");
    // Longer than the other nodes' clocks are apart, or a late one would find the lock free again.
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(Some(1200))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    // Three nodes: three managers over one store. With LOCKATTR_URL, over your Redis.
    let url = std::env::var("LOCKATTR_URL").ok();
    let memory = Arc::new(MemoryStore::new());
    let mut nodes = tokio::task::JoinSet::new();
    for node in ["node-1", "node-2", "node-3"] {
        let builder = LockManager::builder().service(node);
        let manager = match &url {
            Some(url) => builder.url(url).connect().await?,
            None => builder.store(memory.clone()).build()?,
        };
        nodes.spawn(async move {
            let sent = manager.scope(send_invoices("2026-11-20", node)).await;
            manager.shutdown().await;
            (node, sent)
        });
    }
    println!("02:00 on all three nodes:");
    while let Some(Ok((node, sent))) = nodes.join_next().await {
        match sent? {
            Some(invoices) => println!("{node}: {invoices} invoices sent"),
            None => println!("{node}: another node does it"),
        }
    }
    Ok(())
}
