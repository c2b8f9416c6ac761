//! Several keys at once: all of them or none, also while waiting.

use lockattr_tests::{RedisServer, in_time, node};

use super::killed::held;
use super::*;

/// A waiter for both `a` and `b`, once it is the `place`th in both queues.
async fn waiter_for_both(server: &RedisServer, place: usize) -> JoinHandle<LockGuard> {
    let (manager, cli) = (manager(server, LONG).await, server.cli().await);
    let waiter =
        tokio::spawn(
            async move { manager.acquire_all(["b", "a"], LockOptions::new()).await.unwrap() },
        );
    for key in ["a", "b"] {
        eventually("queued", async || queued(&cli, key).await == place).await;
    }
    waiter
}

async fn granted(waiter: JoinHandle<LockGuard>) -> LockGuard {
    in_time(waiter).await.unwrap()
}

#[tokio::test]
async fn a_waiter_for_two_keys_holds_neither_until_both_are_free() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let first = manager(&server, LONG).await;
    let holder = first.acquire("b", LockOptions::new()).await.unwrap();
    let waiter = waiter_for_both(&server, 1).await;
    assert_eq!(cli.held_value("lock:a").await, None, "it holds no key while it waits");
    // Nor is it granted `a` when others are served there.
    if let Some(other) = first.try_acquire("a", LockOptions::new()).await.unwrap() {
        other.release().await.unwrap();
    }
    assert_eq!(cli.held_value("lock:a").await, None, "it was served without `b`");
    holder.release().await.unwrap();
    let both = granted(waiter).await;
    assert_eq!(both.keys().collect::<Vec<_>>(), ["a", "b"]);
    let value = cli.held_value("lock:a").await;
    assert!(value.is_some() && value == cli.held_value("lock:b").await, "{value:?}");
    both.release().await.unwrap();
    drop(first);
    assert_no_trace(&server).await;
}

/// Each key is released by another process, the last one by a kill.
#[tokio::test]
async fn a_waiter_for_two_keys_gets_them_when_the_holders_of_both_are_gone() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let mut dead = node!("lock", url = server.url_with(LONG));
    dead.say("acquire b").await;
    held(&mut dead).await;
    let waiting = [waiter_for_both(&server, 1).await, waiter_for_both(&server, 2).await];
    holder.release().await.unwrap();
    assert_eq!(cli.held_value("lock:a").await, None, "the other one is still held");
    assert_eq!(queued(&cli, "a").await, 2);
    dead.kill();
    cli.end_lease("lock:b", "").await;
    for waiter in waiting {
        granted(waiter).await.release().await.unwrap();
    }
    drop(first);
    assert_no_trace(&server).await;
}

/// The waiter leaves both queues.
#[tokio::test]
async fn a_waiter_that_gives_up_on_two_keys_leaves_both_queues() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let first = manager(&server, LONG).await;
    let holder = first.acquire("b", LockOptions::new()).await.unwrap();
    let waiter = waiter_for_both(&server, 1).await;
    let scripts = async || cli.commandstats().await.get("evalsha").copied();
    let before = scripts().await;
    waiter.abort();
    for key in ["a", "b"] {
        eventually("it has left", async || queued(&cli, key).await == 0).await;
    }
    assert!(scripts().await > before, "its entries have lapsed");
    let free = first.try_acquire("a", LockOptions::new()).await.unwrap();
    free.expect("the queue is empty").release().await.unwrap();
    holder.release().await.unwrap();
    drop(first);
    assert_no_trace(&server).await;
}

/// Any two processes have one key in common, named in any order, again and again: no deadlock.
#[tokio::test]
async fn processes_that_want_keys_in_a_ring_all_get_them_one_at_a_time() {
    let server = RedisServer::start().await;
    let (witness, mut working) = (Witness::default(), JoinSet::new());
    for keys in [["a", "b"], ["c", "b"], ["c", "a"], ["b", "a"]] {
        let (manager, witness) = (manager(&server, LONG).await, witness.clone());
        working.spawn(async move {
            for _ in 0..25 {
                let guard = manager.acquire_all(keys, LockOptions::new()).await.unwrap();
                witness.sees(&guard).await;
                guard.release().await.unwrap();
            }
        });
    }
    all_have_worked(vec![working]).await;
    assert_eq!(witness.count(), 100);
    assert_no_trace(&server).await;
}

/// It is the first waiter for `b`, and a claim for `a` alone came before it.
#[tokio::test]
async fn a_claim_for_two_keys_overtakes_none_in_either_queue() {
    let server = RedisServer::start().await;
    let (cli, first) = (server.cli().await, manager(&server, LONG).await);
    let both = first.acquire_all(["a", "b"], LockOptions::new()).await.unwrap();
    let next = manager(&server, LONG).await;
    let before = tokio::spawn(async move { next.acquire("a", LockOptions::new()).await.unwrap() });
    wait_until_queued(&cli, 1).await;
    let other = manager(&server, LONG).await;
    let waiter =
        tokio::spawn(
            async move { other.acquire_all(["a", "b"], LockOptions::new()).await.unwrap() },
        );
    wait_until_queued(&cli, 2).await;
    both.release().await.unwrap();
    let before = granted(before).await;
    assert_eq!(cli.held_value("lock:b").await, None, "`a` is another's, and so it has neither");
    before.release().await.unwrap();
    granted(waiter).await.release().await.unwrap();
    drop(first);
    assert_no_trace(&server).await;
}
