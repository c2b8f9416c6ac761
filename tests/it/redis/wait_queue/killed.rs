//! Processes that are killed (kill -9) while they hold, or while they are queued.

use lockattr::FencingToken;
use lockattr_tests::{Node, RedisServer, eventually, node};

use super::*;

/// The fencing token that a node prints after an acquisition.
pub(super) async fn held(node: &mut Node) -> FencingToken {
    let reply = node.line().await;
    let token = reply.strip_prefix("held ").and_then(|token| token.parse().ok());
    // Printed whole, as issued; the low bits count its local hand-offs.
    let token: u64 = token.unwrap_or_else(|| panic!("the node replied: {reply}"));
    FencingToken::from_counter(token >> 10)
}

/// A process that is the `place`th in the wait queue for `a`.
pub(super) async fn waiting_node(server: &RedisServer, query: &str, place: usize) -> Node {
    let mut node = node!("lock", url = server.url_with(query));
    node.say("acquire a").await;
    wait_until_queued(&server.cli().await, place).await;
    node
}

/// Waits until the store has `count` subscribers left, of which the holder is one.
async fn listeners(server: &RedisServer, count: usize) {
    let cli = server.cli().await;
    eventually("the store knows it", async || subscribers(&cli).await.len() == count).await;
}

/// Their grants reach no process, so they go to the next waiter.
#[tokio::test]
async fn heads_of_the_queue_that_were_killed_are_passed_over_at_once() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let mut heads = [waiting_node(&server, LONG, 1).await, waiting_node(&server, LONG, 2).await];
    let next = [manager(&server, LONG).await, manager(&server, LONG).await];
    let mut crowds = Vec::new();
    for (place, next) in next.iter().enumerate() {
        crowds.push(crowd(next, &witness, 4));
        wait_until_queued(&cli, 3 + place).await;
    }
    listeners(&server, 5).await;
    heads.iter_mut().for_each(Node::kill);
    listeners(&server, 3).await;
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    all_have_worked(crowds).await;
    assert_eq!(witness.count(), 8);
    drop((first, next));
    assert_no_trace(&server).await;
}

#[tokio::test]
async fn a_lock_whose_whole_queue_was_killed_is_free_as_soon_as_it_is_released() {
    let server = RedisServer::start().await;
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    for place in 1..=3 {
        waiting_node(&server, LONG, place).await.kill();
    }
    listeners(&server, 1).await;
    holder.release().await.unwrap();
    let next = first.try_acquire("a", LockOptions::new()).await.unwrap();
    next.expect("the queue is empty").release().await.unwrap();
    drop(first);
    assert_no_trace(&server).await;
}

/// The holder and the head of the queue die together, on one machine. The waiters receive no notification when its
/// lease ends: they ask again.
#[tokio::test]
async fn a_holder_and_the_head_of_its_queue_that_were_killed_together_cost_one_ttl() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let mut holder = node!("lock", url = server.url_with(LONG));
    holder.say("acquire a").await;
    witness.saw(held(&mut holder).await);
    let mut head = waiting_node(&server, LONG, 1).await;
    let mut crowds = Vec::new();
    for place in 2..=4 {
        crowds.push(crowd(&manager(&server, LONG).await, &witness, 4));
        wait_until_queued(&cli, place).await;
    }
    head.kill();
    holder.kill();
    assert_eq!(witness.count(), 0);
    cli.end_lease("lock:a", "").await;
    all_have_worked(crowds).await;
    assert_eq!(witness.count(), 12);
    assert_no_trace(&server).await;
}

/// Those behind know only the lease of the first holder, which is a long one. The next two die, and their leases end.
#[tokio::test]
async fn the_queue_moves_on_within_short_ttls_that_come_after_a_long_one() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    // The second of them is granted when the first one's lease ends, not by a release.
    let mut next = [waiting_node(&server, LONG, 1).await, waiting_node(&server, LONG, 2).await];
    let crowds = vec![crowd(&manager(&server, LONG).await, &witness, 4)];
    wait_until_queued(&cli, 3).await;
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    for node in &mut next {
        witness.saw(held(node).await);
        node.kill();
        cli.end_lease("lock:a", "").await;
    }
    all_have_worked(crowds).await;
    assert_eq!(witness.count(), 4);
    drop(first);
    assert_no_trace(&server).await;
}
