//! A partner's API with a limit on calls: `permits` keeps the whole fleet within it.
//!
//! The partner accepts three concurrent calls and rejects a fourth. Three nodes have eight
//! questions each. First they call without a lock, then with it: at most three calls are then in
//! progress, and, because of `hold_at_least`, at most three begin in a tenth of a second.
//!
//! ```text
//! cargo run --example partner                                        # three tasks, in memory
//! LOCKATTR_URL=redis://127.0.0.1/ cargo run --example partner        # three processes
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

mod fleet;
mod partner {
    pub(super) mod client;
    pub(super) mod server;
}

use std::net::SocketAddr;

use fleet::Anything;
use lockattr::LockManager;
use partner::{client, server};
use tokio::task::JoinSet;
use tokio::time::Instant;

const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];

/// Runs all nodes at once: processes, or tasks if the locks are in memory.
async fn all_nodes(url: &str, partner: SocketAddr, limited: bool) -> Result<(), Anything> {
    if !fleet::is_memory(url) {
        fleet::run(&NODES, &[partner.to_string(), limited.to_string()]).await?;
        return Ok(());
    }
    let mut nodes = JoinSet::new();
    for node in NODES {
        nodes.spawn(client::node(node, partner, limited));
    }
    while let Some(done) = nodes.join_next().await {
        done??;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Anything> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    let manager = LockManager::builder().url(&url).service("partner").connect().await?;
    manager.install()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [node, partner, limited] = &arguments[..] {
        client::node(node, partner.parse()?, limited.parse()?).await?;
        manager.shutdown().await;
        return Ok(());
    }

    for (limited, name) in [(false, "without permits"), (true, "with permits")] {
        let partner = server::Partner::open().await?;
        let started = Instant::now();
        all_nodes(&url, partner.address(), limited).await?;
        let took = started.elapsed().as_millis();
        let (calls, at_once, refused) = partner.seen();
        println!("{name}: {calls} calls, {at_once} at once, {refused} refused, {took} ms");
    }
    manager.shutdown().await;
    Ok(())
}
