//! A server that loses the wait queue, or its scripts.

use lockattr::Error;
use lockattr_tests::{RedisServer, eventually, in_time, skip};

use super::*;

/// A holder, and two processes with four waiting tasks each.
struct Scene {
    server: RedisServer,
    cli: Cli,
    witness: Witness,
    holder: LockGuard,
    crowds: Vec<JoinSet<()>>,
}

impl Scene {
    async fn set(query: &str) -> Self {
        let server = RedisServer::start().await;
        let (cli, witness) = (server.cli().await, Witness::default());
        let holder = acquire(&manager(&server, query).await).await;
        witness.saw(holder.fencing_token());
        let mut crowds = Vec::new();
        for place in 1..=2 {
            crowds.push(crowd(&manager(&server, query).await, &witness, 4));
            wait_until_queued(&cli, place).await;
        }
        Self { server, cli, witness, holder, crowds }
    }

    /// Waits until all have got in, one at a time, and asserts that nothing is left.
    async fn ends(server: RedisServer, witness: Witness, crowds: Vec<JoinSet<()>>) {
        all_have_worked(crowds).await;
        assert_eq!(witness.count(), 8);
        assert_no_trace(&server).await;
    }
}

/// The lock is gone too: its holder learns that from its next renewal, the waiters from their
/// timers.
#[tokio::test]
async fn a_flush_strands_no_waiter() {
    let Scene { server, cli, witness, holder, crowds } = Scene::set(LONG).await;
    cli.flushall().await;
    skip(Duration::from_secs(25 * 60));
    in_time(holder.lost()).await;
    assert!(matches!(holder.release().await, Err(Error::Lost { .. })));
    Scene::ends(server, witness, crowds).await;
}

/// Only the queue is gone; its holder goes on and releases later.
#[tokio::test]
async fn waiters_join_a_deleted_queue_again() {
    let Scene { server, cli, witness, holder, crowds } = Scene::set(LONG).await;
    let deleted: usize = cli.query(&["DEL", "lockattr:line-of:{lock:a}"]).await;
    assert_eq!(deleted, 1);
    eventually("they queue again", async || queued(&cli, "a").await == 2).await;
    assert_eq!(witness.count(), 0, "it is held");
    holder.release().await.unwrap();
    Scene::ends(server, witness, crowds).await;
}

/// The connections end with the server, which the clients notice at once.
#[tokio::test]
async fn a_restart_without_data_strands_no_waiter() {
    let Scene { server, witness, holder, crowds, .. } = Scene::set(LONG).await;
    server.restart().await;
    all_have_worked(crowds).await;
    assert!(matches!(holder.release().await, Err(Error::Lost { .. })));
    Scene::ends(server, witness, Vec::new()).await;
}

#[tokio::test]
async fn scripts_that_were_forgotten_while_a_caller_waits_are_loaded_by_the_release() {
    let Scene { server, cli, witness, holder, crowds } = Scene::set(LONG).await;
    cli.script_flush().await;
    holder.release().await.unwrap();
    Scene::ends(server, witness, crowds).await;
}
