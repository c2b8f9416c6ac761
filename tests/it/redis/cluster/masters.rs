//! Masters that are killed, stopped, or replaced in an orderly failover.

use lockattr::Error;
use tokio::time::{Instant, sleep};

use super::*;

/// Tries until a call succeeds. Returns how long that took.
async fn first_acquire(manager: &LockManager, key: &str) -> Duration {
    let began = Instant::now();
    loop {
        match manager.acquire(key, LockOptions::new().wait(Duration::from_millis(500))).await {
            Ok(guard) => {
                guard.release().await.unwrap();
                return began.elapsed();
            }
            Err(Error::Store { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        assert!(began.elapsed() < LIMIT, "no new master within {LIMIT:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "figures for the log")]
async fn a_master_that_dies_costs_a_failover_and_no_lease() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster, "ttl=20s").await;
    let holder = acquire(&manager, "a").await;
    let held = holder.fencing_token();
    let master = cluster.node_of("lock:a").await;
    assert_eq!(master.cli().await.query::<usize>(&["WAIT", "1", "5000"]).await, 1);
    let free = keys_beside(&cluster, "a", true, 1).await.remove(0);
    let elsewhere = keys_beside(&cluster, "a", false, 1).await.remove(0);
    master.kill();
    let first = {
        let (manager, free) = (manager.clone(), free.clone());
        tokio::spawn(async move { first_acquire(&manager, &free).await })
    };
    acquire(&manager, &elsewhere).await.release().await.unwrap();
    assert!(!first.is_finished(), "the other masters' locks wait for no failover");
    let took = first.await.unwrap();
    eprintln!("the first acquire of a dead master's slot after {took:?}");
    cluster.failed_over(master).await;
    // The lease was copied with the slot, and is renewed at the new master.
    assert!(holder.ensure_held().is_ok());
    let (new, name) = (cluster.node_of("lock:a").await, lock("a"));
    assert_ne!(new.addr(), master.addr());
    let cli = new.cli().await;
    eventually("it is renewed", async || cli.pttl(&name).await > 19_000).await;
    let other = super::manager(&cluster, LONG).await;
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
    let query = "ttl=20s&wait=60s&heartbeat=500ms&response_timeout=500ms";
    let (first, second) = (manager(&cluster, query).await, manager(&cluster, query).await);
    let holder = acquire(&first, "a").await;
    let held = holder.fencing_token();
    let waiter = waiter(&cluster, &second, "a", 1).await;
    let master = cluster.node_of("lock:a").await;
    assert_eq!(master.cli().await.query::<usize>(&["WAIT", "1", "5000"]).await, 1);
    if block_at {
        master.stop_signal();
    } else {
        master.kill();
    }
    cluster.failed_over(master).await;
    let line = async || queued(&cluster, "a").await == 1;
    eventually("queued again", line).await;
    let new = cluster.node_of("lock:a").await.cli().await;
    let listens = async || {
        let channels: Vec<String> = new.query(&["PUBSUB", "SHARDCHANNELS"]).await;
        !channels.is_empty()
    };
    eventually("it listens there", listens).await;
    assert!(!waiter.is_finished(), "two holders at once");
    assert!(holder.ensure_held().is_ok());
    holder.release().await.unwrap();
    let next = granted(SOON, waiter).await;
    assert!(next.fencing_token() > held);
    if block_at {
        master.continue_signal();
        cluster.settled().await;
    }
    assert!(next.ensure_held().is_ok());
    next.release().await.unwrap();
    drop((first, second));
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
    let (first, second) = (manager(&cluster, LONG).await, manager(&cluster, LONG).await);
    let holder = acquire(&first, "a").await;
    let waiter = waiter(&cluster, &second, "a", 1).await;
    cluster.switch_over(slot_of(&cluster, "a")).await;
    let new = cluster.node_of("lock:a").await.cli().await;
    let listens = async || {
        let channels: Vec<String> = new.query(&["PUBSUB", "SHARDCHANNELS"]).await;
        !channels.is_empty()
    };
    eventually("it listens there", listens).await;
    holder.release().await.unwrap();
    granted(SOON, waiter).await.release().await.unwrap();
    drop((first, second));
    assert_no_trace(&cluster).await;
}

#[tokio::test]
async fn a_shard_that_is_gone_is_an_error_in_time_and_no_harm_to_the_others() {
    let cluster = Cluster::builder()
        .servers(RedisServer::builder().line("cluster-require-full-coverage no"))
        .start()
        .await;
    let query = "ttl=2s&wait=1s&response_timeout=300ms&connect_timeout=300ms";
    let manager = manager(&cluster, query).await;
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

    let began = Instant::now();
    let never = async |_: &lockattr::Lease| panic!("the body ran");
    let refused = manager.with_lock(&gone, LockOptions::new(), never).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    let both = tokio::spawn({
        let (manager, keys) = (manager.clone(), [gone.clone(), other.clone()]);
        async move { manager.acquire_all(&keys, LockOptions::new()).await }
    });
    sleep(Duration::from_millis(100)).await;
    acquire(&manager, &other).await.release().await.unwrap();
    assert!(!both.is_finished(), "it delayed no other while it was tried");
    let both = both.await.unwrap();
    assert!(matches!(both, Err(Error::Store { .. })), "{both:?}");
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());

    let began = Instant::now();
    for _ in 0..20 {
        acquire(&manager, &other).await.release().await.unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    drop(manager);
    // A possible grant there is released again and again for as long as it could last.
    sleep(Duration::from_secs(2)).await;
    assert_no_trace(&cluster).await;
}
