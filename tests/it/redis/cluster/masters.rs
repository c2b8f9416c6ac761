//! Masters that are killed, stopped, or replaced in an orderly failover.

use lockattr::Error;

use super::*;

#[tokio::test]
async fn a_master_that_dies_costs_a_failover_and_no_lease() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster).await;
    let holder = acquire(&manager, "a").await;
    let held = holder.fencing_token();
    let master = cluster.node_of("lock:a").await;
    replicated(&cluster, "a").await;
    let free = keys_beside(&cluster, "a", true, 1).await.remove(0);
    let elsewhere = keys_beside(&cluster, "a", false, 1).await.remove(0);
    master.kill();
    let first = {
        let manager = manager.clone();
        tokio::spawn(async move { acquire(&manager, &free).await })
    };
    acquire(&manager, &elsewhere).await.release().await.unwrap();
    assert!(!first.is_finished(), "the other masters' locks wait for no failover");
    cluster.failed_over(master).await;
    granted(first).await.release().await.unwrap();
    // The lease was copied with the slot, and is renewed at the new master.
    assert!(holder.ensure_held().is_ok());
    let (new, name) = (cluster.node_of("lock:a").await, lock("a"));
    assert_ne!(new.addr(), master.addr());
    holder.extend(LONGER).await.unwrap();
    assert!(new.cli().await.pttl(&name).await > 800_000, "it is renewed there");
    let other = super::manager(&cluster).await;
    assert!(other.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    holder.release().await.unwrap();
    let next = acquire(&other, "a").await;
    assert!(next.fencing_token() > held);
    next.release().await.unwrap();
    drop((manager, other));
    assert_no_trace(&cluster).await;
}

/// A waiter notices a master's death by the end of its connection, and a silent master by its
/// heartbeat.
async fn waiters_get_in(block_at: bool) {
    let cluster = Cluster::start().await;
    let (first, second) = (quick_manager(&cluster, ""), quick_manager(&cluster, ""));
    let holder = acquire(&first, "a").await;
    let held = holder.fencing_token();
    let waiter = waiter(&cluster, &second, "a", 1).await;
    let master = cluster.node_of("lock:a").await;
    replicated(&cluster, "a").await;
    if block_at {
        master.stop_signal();
    } else {
        master.kill();
    }
    cluster.failed_over(master).await;
    let line = async || queued(&cluster, "a").await == 1;
    eventually("queued again", line).await;
    is_listened_to(cluster.node_of("lock:a").await).await;
    assert!(!waiter.is_finished(), "two holders at once");
    assert!(holder.ensure_held().is_ok());
    drop(holder);
    let next = granted(waiter).await;
    assert!(next.fencing_token() > held);
    if block_at {
        master.continue_signal();
        cluster.settled().await;
    }
    assert!(next.ensure_held().is_ok());
    drop((next, first, second));
    assert_no_trace(&cluster).await;
}

#[tokio::test]
async fn waiters_of_a_master_that_dies_get_in_at_the_next() {
    waiters_get_in(false).await;
}

#[tokio::test]
async fn waiters_of_a_master_that_is_stopped_get_in_at_the_next() {
    waiters_get_in(true).await;
}

/// The old master keeps its connections, and takes the channels away.
#[tokio::test]
async fn waiters_of_a_master_that_was_replaced_on_request_get_in() {
    let cluster = Cluster::start().await;
    let (first, second) = (manager(&cluster).await, manager(&cluster).await);
    let holder = acquire(&first, "a").await;
    let waiter = waiter(&cluster, &second, "a", 1).await;
    cluster.switch_over(slot_of(&cluster, "a")).await;
    is_listened_to(cluster.node_of("lock:a").await).await;
    holder.release().await.unwrap();
    granted(waiter).await.release().await.unwrap();
    drop((first, second));
    assert_no_trace(&cluster).await;
}

#[tokio::test]
async fn a_shard_that_is_gone_is_an_error_in_time_and_no_harm_to_the_others() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster).await;
    // They are acquired in this order.
    let at = |slots: std::ops::Range<u16>| {
        let mut keys = (0..).map(|number| format!("k{number}"));
        keys.find(|key| slots.contains(&slot_of(&cluster, key))).unwrap()
    };
    let (other, gone) = (at(0..5_000), at(12_000..16_384));
    let (slot, name) = (slot_of(&cluster, &gone), lock(&gone));
    let (master, replica) = (cluster.node_of(&name).await, cluster.replica_of(slot).await);
    replica.unwrap().kill();
    master.kill();

    // What was on its way when the master died is released again and again while it could be held.
    let short = LockOptions::new().ttl(Duration::from_secs(2));
    let brief = short.clone().wait(Duration::from_secs(1));
    let never = async |_: &lockattr::Lease| panic!("the body ran");
    let refused = in_time(manager.with_lock(&gone, brief.clone(), never)).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    let both = tokio::spawn({
        let (manager, keys) = (manager.clone(), [gone.clone(), other.clone()]);
        async move { manager.acquire_all(&keys, short).await }
    });
    for _ in 0..20 {
        acquire(&manager, &other).await.release().await.unwrap();
    }
    assert!(!both.is_finished(), "it delayed no other while it was tried");
    both.abort();
    let refused = in_time(manager.acquire_all([&gone, &other], brief)).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    let free = manager.try_acquire(&other, LockOptions::new()).await.unwrap();
    assert!(free.is_some(), "it was acquired, and kept");
    drop((free, manager));
    assert_no_trace(&cluster).await;
}
