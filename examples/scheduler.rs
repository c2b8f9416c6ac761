//! A scheduler that runs on one node of three. When that node stops, the next one leads at once.
//!
//! ```text
//! cargo run --example scheduler                                        # three tasks, in memory
//! LOCKATTR_URL=redis://127.0.0.1/ cargo run --example scheduler        # three processes
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

/// How many jobs a node starts before it stops, as in a deploy. A real scheduler goes on.
const JOBS: u32 = 3;

/// Starts the jobs, on the node that leads.
///
/// * `lead`: the call waits until this node leads. The body is dropped when it does not lead any more.
/// * `ttl`: how long no node leads after the leader was killed.
/// * `progress_within`: a leader that hangs loses its term. Each job reports progress.
///
/// The number of the term goes with each job, so that the place where a job writes can refuse a late one.
#[distributed_lock(
    key = "scheduler",
    lead = true,
    ttl = "5s",
    progress_within = "30s",
    term = term
)]
async fn schedule(node: &str) -> Result<(), Error> {
    println!("{node}: leads in term {}", term.number());
    for job in 1..=JOBS {
        sleep(Duration::from_millis(100)).await;
        println!("{node}: starts job {job} of term {}", term.number());
        term.progress();
    }
    Ok(())
}

/// One node, until it stops.
async fn node(manager: LockManager, name: &str) -> Result<(), Error> {
    manager.scope(schedule(name)).await?;
    match manager.leader("scheduler").await? {
        Some(leader) => {
            let next = leader.holder.service.unwrap_or_default();
            println!("{name}: stops, and {next} leads");
        }
        None => println!("{name}: stops, and no node leads"),
    }
    manager.shutdown().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Anything> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    if let Some(name) = std::env::args().nth(1) {
        let manager = LockManager::builder().url(&url).service(&name).connect().await?;
        return Ok(node(manager, &name).await?);
    }
    if !fleet::is_memory(&url) {
        fleet::run(&NODES, &[]).await?;
        return Ok(());
    }
    let memory = Arc::new(MemoryStore::new());
    let mut nodes = JoinSet::new();
    for name in NODES {
        let manager = LockManager::builder().store(memory.clone()).service(name).build()?;
        nodes.spawn(node(manager, name));
    }
    while let Some(stopped) = nodes.join_next().await {
        stopped??;
    }
    Ok(())
}
