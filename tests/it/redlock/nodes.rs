//! Five real servers that are killed, stopped, cut off, or restarted empty.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, LostReason};
use lockattr_tests::{
    Fault, Independents, RedisServer, StoppedClock, assert_nobody_listens, assert_nothing_left,
    eventually, force_release, in_time, node, patient, with_query,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use crate::redis::RIGHTS;

/// A test's servers have just started; without this they would wait out what a restart may have
/// lost.
const OLD: &str = "durable=true";

/// Five servers that no other test uses. When one is killed, another test's server may get its
/// port, and must not grant anything here.
async fn five_of_our_own() -> Independents {
    let servers = RedisServer::builder().password("not held by another");
    Independents::builder().servers(servers).start().await
}

async fn cycle(manager: &LockManager) {
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    assert!(manager.holder("a").await.unwrap().is_some());
    guard.extend(Duration::from_secs(20)).await.unwrap();
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn two_of_five_may_be_down_and_come_back() {
    let servers = five_of_our_own().await;
    let manager = LockManager::connect(&servers.url_with(OLD)).await.unwrap();
    cycle(&manager).await;
    servers.kill(0);
    servers.kill(3);
    for _ in 0..20 {
        cycle(&manager).await;
    }
    servers.revive(0).await;
    servers.revive(3).await;
    servers.kill(1);
    servers.kill(2);
    eventually("it connects to those that are back", async || {
        manager.try_acquire("a", LockOptions::new()).await.is_ok()
    })
    .await;
    assert_nothing_left(&servers).await;
}

#[tokio::test]
async fn two_of_five_may_be_stopped_and_resumed() {
    let servers = Independents::start(5).await;
    let manager = LockManager::connect(&servers.url_with(OLD)).await.unwrap();
    cycle(&manager).await;
    servers.stop_signal(1);
    servers.stop_signal(4);
    for _ in 0..20 {
        cycle(&manager).await;
    }
    servers.continue_signal(1);
    servers.continue_signal(4);
    cycle(&manager).await;
    // The two now execute the requests sent meanwhile, in order: nothing is left.
    assert_nothing_left(&servers).await;
}

#[tokio::test]
async fn three_of_five_down_or_stopped_are_an_outage_in_time_and_no_body_runs() {
    for killed in [true, false] {
        let servers = five_of_our_own().await;
        let manager = LockManager::connect(&servers.url_with(OLD)).await.unwrap();
        for n in 0..3 {
            match killed {
                true => servers.kill(n),
                false => servers.stop_signal(n),
            }
        }
        let body = async |_: &_| panic!("the body ran without the lock");
        let options = LockOptions::new().wait(Duration::from_millis(500));
        let call = manager.with_lock("a", options, body);
        let error = in_time(call).await.unwrap_err();
        assert!(matches!(&error, Error::Store { key, .. } if key == "a"), "{error:?}");
        drop(manager);
        if !killed {
            (0..3).for_each(|n| servers.continue_signal(n));
        }
        assert_nothing_left(&servers).await;
    }
}

/// A majority keeps the lease alive; without one it is lost at its deadline.
#[tokio::test]
async fn a_holder_keeps_its_lease_while_three_are_up_and_learns_in_time_when_they_are_not() {
    let servers = five_of_our_own().await;
    let (url, ttl) = (servers.url_with(OLD), Duration::from_secs(10));
    let manager = LockManager::connect(&url).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new().ttl(ttl)).await.unwrap();
    servers.kill(0);
    servers.stop_signal(1);
    guard.extend(ttl).await.expect("three of five renew it");
    servers.kill(2);
    let mut left = guard.remaining();
    while guard.ensure_held().is_ok() {
        assert!(guard.remaining() <= left, "renewed by a minority");
        left = guard.remaining();
        sleep(Duration::from_millis(20)).await;
    }
    in_time(guard.lost()).await;
    servers.continue_signal(1);
    servers.revive(0).await;
    servers.revive(2).await;
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    let next = manager.acquire("a", LockOptions::new()).await.unwrap();
    next.release().await.unwrap();
    assert_nothing_left(&servers).await;
}

/// With the two nodes that the holder never had, a node that came back empty would be a second
/// majority.
#[tokio::test]
async fn a_server_that_came_back_empty_grants_nothing_until_the_longest_lease_is_over() {
    let servers = Independents::start(5).await;
    let through_proxies = servers.url_through_proxies().await;
    let proxies = servers.proxies().await;
    // The servers themselves have just started.
    let first = LockManager::connect(with_query(&through_proxies, "max_ttl=1h")).await;
    let error = match first {
        Ok(manager) => manager.try_acquire("a", LockOptions::new()).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.to_string().contains("grants no locks for"), "{error}");
    let url = with_query(&through_proxies, "max_ttl=3s&ttl=3s&clock_skew=0s");
    let manager = LockManager::builder().url(&url).build().unwrap();
    drop(manager.acquire("a", LockOptions::new()).await.unwrap());

    // Held on three nodes, one of which loses it.
    let fixed = LockOptions::new().renew(false);
    for proxy in &proxies[3..] {
        proxy.refuse().await;
        proxy.cut().await;
    }
    let requested = Instant::now();
    let guard = manager.acquire("a", fixed.clone()).await.unwrap();
    servers.restart(2).await;
    for proxy in &proxies[3..] {
        proxy.accept().await;
    }
    for proxy in &proxies[..2] {
        proxy.refuse().await;
        proxy.cut().await;
    }
    let other = LockManager::builder().url(&url).build().unwrap();
    while guard.ensure_held().is_ok() {
        let got = other.try_acquire("a", fixed.clone()).await;
        assert!(!matches!(got, Ok(Some(_))) || guard.ensure_held().is_err(), "two at once");
        sleep(Duration::from_millis(20)).await;
    }
    assert!(requested.elapsed() >= Duration::from_millis(2900), "the lease was cut short");
    drop(guard);
    drop(other.acquire("a", LockOptions::new()).await.unwrap());
    for proxy in &proxies[..2] {
        proxy.accept().await;
    }
}

/// One node has lost the subscription and does not answer the next one, so the claim's acquire waits
/// for it there. Its release goes over the other connection. By then the claim has acquired the lock
/// from the other nodes and done its work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_is_executed_after_its_release_is_undone() {
    const KEYS: usize = 16;
    let servers = Independents::start(5).await;
    let url = servers.url_through_proxies().await;
    let url = with_query(&url, "durable=true&connections=2&ttl=10m");
    let slow = &servers.proxies().await[4];
    let other = LockManager::connect(&servers.url_with("durable=true")).await.unwrap();
    // Some of them use the connection with the subscription, and the others do not.
    let keys: Vec<_> = (0..KEYS).map(|nth| format!("k{nth}")).collect();
    let held = futures_util::future::try_join_all(
        keys.iter().map(|key| other.acquire(key, LockOptions::new())),
    );
    let held = held.await.unwrap();
    // It stands still while the locks are released, so that no waiter asks when some nodes have
    // released and others have not: it would wait for the slow one. Its clock stands still before, so
    // that each waiter asks twice, the second time for its place in the queue, and not again by a timer.
    let waits = Builder::new_current_thread().enable_all().build().unwrap();
    let manager = driven(&waits, LockManager::connect(&url)).unwrap();
    slow.always("subscribe", Fault::HoldReply);
    let cli = servers.nodes()[4].cli().await;
    assert!(cli.query::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]).await > 0);
    let stopped = driven(&waits, async {
        // The loss makes waiters ask again, so none waits yet.
        for key in &keys {
            assert!(manager.holder(key).await.unwrap().is_some());
        }
        eventually("it subscribes again", async || slow.seen("subscribe") >= 2).await;
        StoppedClock::new()
    });
    let waiting = keys.iter().map(|key| {
        let (manager, key) = (manager.clone(), key.clone());
        waits.spawn(async move {
            manager.acquire(key, LockOptions::new()).await.unwrap().release().await.unwrap();
        })
    });
    let waiting: Vec<_> = waiting.collect();
    let others = &servers.nodes()[..4];
    let proxies = servers.proxies().await;
    let asked = async || proxies[..4].iter().all(|proxy| proxy.answered("acquire") == 2 * KEYS);
    driven(&waits, eventually("all asked twice", asked));
    let before = slow.answered("release");
    for guard in held {
        guard.release().await.unwrap();
    }
    for node in others {
        let cli = node.cli().await;
        let free = async || cli.query::<Vec<String>>(&["KEYS", "lock:*"]).await.is_empty();
        eventually("released there", free).await;
    }
    driven(&waits, async {
        drop(stopped);
        for waiter in waiting {
            in_time(waiter).await.unwrap();
        }
        eventually("released there first", async || slow.answered("release") > before).await;
        slow.pass();
        let late = async || slow.answered("acquire") >= 2 * KEYS;
        eventually("all are requested", late).await;
        assert_nothing_left(&servers).await;
    });
    waits.shutdown_background();
}

/// Drives another runtime until its work is done.
fn driven<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| runtime.block_on(work))
}

/// Processes on all five: none waits for a lease to end, no update is lost, nothing is left.
#[tokio::test]
async fn processes_take_turns_and_lose_nothing() {
    let servers = Independents::start(5).await;
    let counter = RedisServer::start().await;
    let cli = counter.cli().await;
    cli.query::<String>(&["SET", "count", "0"]).await;
    let url = servers.url_with(OLD);
    let mut nodes: Vec<_> =
        (0..4).map(|_| node!("lock", url = url, counter = counter.url())).collect();
    for node in &mut nodes {
        node.say("add 25").await;
    }
    for node in &mut nodes {
        assert_eq!(node.line().await, "added 25");
    }
    assert_eq!(cli.value("count").await.as_deref(), Some("100"));
    for mut node in nodes {
        assert!(node.finish().await.success());
    }
    assert_nothing_left(&servers).await;
    assert_nobody_listens(&servers).await;
}

/// An acquire is one command to each server, including the fencing token, and so is a release.
#[tokio::test]
async fn an_acquire_is_one_command_to_each_server() {
    let servers = Independents::start(5).await;
    let url = with_query(&servers.url_through_proxies().await, "durable=true");
    let proxies = servers.proxies().await;
    let manager = LockManager::connect(&url).await.unwrap();
    let mut last = None;
    for _ in 0..3 {
        manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    }
    for proxy in proxies {
        eventually("all have released", async || proxy.answered("release") >= 3).await;
        proxy.clear_log();
    }
    for _ in 0..20 {
        let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
        assert!(Some(guard.fencing_token()) > last);
        last = Some(guard.fencing_token());
        guard.release().await.unwrap();
    }
    for proxy in proxies {
        eventually("all have released", async || proxy.answered("release") >= 23).await;
        // On a busy machine a release may be sent twice, as the order of two answers is unknown.
        let log = proxy.log();
        let acquires =
            log.iter().filter(|name| ["acquire", "renew"].contains(&name.as_str())).count();
        assert_eq!(acquires, 20, "{log:?}");
    }
    assert_nothing_left(&servers).await;
}

/// A majority that lost the lock means a lost lease.
#[tokio::test]
async fn a_majority_that_forgot_the_lock_is_detected_by_the_next_renewal() {
    let servers = Independents::start(3).await;
    let manager = LockManager::connect(&servers.url_with(OLD)).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    for n in 0..2 {
        servers.node(n).cli().await.query::<String>(&["FLUSHALL"]).await;
    }
    assert!(matches!(guard.extend(Duration::from_secs(30)).await, Err(Error::Lost { .. })));
    in_time(guard.lost()).await;
    let lost = guard.ensure_held().unwrap_err();
    assert!(matches!(lost, Error::Lost { reason: LostReason::Taken, .. }), "{lost:?}");
    drop(guard);
    assert_nothing_left(&servers).await;
}

/// What `durable=true` declares of the servers: all may go down at once, and no lock is forgotten.
#[tokio::test]
async fn servers_that_keep_every_write_on_disk_forget_nothing() {
    let durable = Independents::builder().count(3).servers(RedisServer::builder().appendonly());
    let servers = durable.start().await;
    let url = servers.url_with("durable=true&ttl=10m");
    let manager = LockManager::connect(&url).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    let token = guard.fencing_token();
    (0..3).for_each(|n| servers.kill(n));
    for n in 0..3 {
        servers.revive(n).await;
    }
    let other = LockManager::connect(&url).await.unwrap();
    assert!(other.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "two holders");
    eventually("it is renewed again", async || guard.extend(Duration::from_secs(60)).await.is_ok())
        .await;
    guard.release().await.unwrap();
    let next = other.acquire("a", LockOptions::new()).await.unwrap();
    assert!(next.fencing_token() > token);
    next.release().await.unwrap();
    assert_nothing_left(&servers).await;
}

/// A user with the rights that the stores' docs name is enough.
///
/// Red without: `+info` in them.
#[tokio::test]
async fn a_user_with_the_rights_that_the_docs_name_is_enough() {
    let rights = format!("{RIGHTS} +info");
    let server = RedisServer::builder().password("harness").user("locker", "s3cret", &rights);
    let servers = Independents::builder().count(3).servers(server).start().await;
    let hosts: Vec<_> = servers.nodes().iter().map(RedisServer::addr).collect();
    let url = patient(&format!("redlock://locker:s3cret@{}/", hosts.join(",")));
    let url = with_query(&url, "ttl=1s&max_ttl=1s&clock_skew=0s");
    let manager = LockManager::builder().url(&url).build().unwrap();
    let other = LockManager::builder().url(&url).build().unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let waits = tokio::spawn(async move { other.acquire("a", LockOptions::new()).await });
    manager.holder("a").await.unwrap();
    drop(held);
    drop(in_time(waits).await.unwrap().unwrap());
    assert_nothing_left(&servers).await;
    for node in servers.nodes() {
        type Entry = std::collections::HashMap<String, redis::Value>;
        let log: Vec<Entry> = node.cli().await.query(&["ACL", "LOG"]).await;
        let refused = log.iter().map(|entry| format!("{:?}", entry["object"]));
        // The client's name and version, and commands of newer servers, where the user may run
        // them.
        let known = ["setinfo", "delex", "delifeq", "cad"];
        let refused: Vec<_> =
            refused.filter(|what| !known.iter().any(|known| what.contains(known))).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
}

/// Red without: the majority in `Store::evict` and `Store::survey` of `RedlockStore`.
#[tokio::test]
async fn an_operator_needs_a_majority_and_no_more() {
    let servers = five_of_our_own().await;
    let url = servers.url_with(OLD);
    let [here, there] = [LockManager::connect(&url).await, LockManager::connect(&url).await];
    let (here, there) = (here.unwrap(), there.unwrap());
    let guard = here.acquire("a", LockOptions::new()).await.unwrap();
    // A lock on one server only was granted by no majority.
    let cli = servers.nodes()[1].cli().await;
    cli.query::<()>(&["SET", "lock:stray", "x", "PX", "60000"]).await;
    servers.kill(0);
    servers.kill(3);
    let waiting = tokio::spawn(async move { there.acquire("a", LockOptions::new()).await });
    eventually("queued", async || {
        let held = here.held_locks().await.unwrap();
        assert_eq!(held.iter().map(|held| held.key.as_str()).collect::<Vec<_>>(), ["a"]);
        held[0].waiting == 1
    })
    .await;
    assert!(force_release(&here, "a").await.unwrap());
    let next = in_time(waiting).await.unwrap().unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    let lost = guard.release().await;
    assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Taken, .. })), "{lost:?}");
    next.ensure_held().unwrap();
    next.release().await.unwrap();

    servers.kill(4);
    for refused in [here.held_locks().await.map(drop), force_release(&here, "a").await.map(drop)] {
        assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    }
}
