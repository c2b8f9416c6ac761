//! A master that was replaced without noticing and still answers.

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Fault, Proxy, Sentinels, assert_nothing_left, eventually, in_time};
use tokio::time::timeout;

use super::{LIMIT, long, replicated, wait_until_queued, waits};

/// A question that it has not answered is asked of the new one; what it answers when it thaws does not count.
#[tokio::test]
async fn replies_of_a_resumed_old_master_do_not_count() {
    let sentinels = Sentinels::start().await;
    let url = sentinels.url_with("connections=1&heartbeat=60s");
    let manager = LockManager::connect(url).await.unwrap();
    let old = sentinels.master().await;
    old.stop_signal();
    let call = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire("a", long()).await }
    });
    let new = sentinels.failed_over(old).await;
    // Over a new connection, which shows that the old one was left.
    let free = async || {
        let got = manager.try_acquire("b", LockOptions::new());
        let got = timeout(LIMIT / 10, got).await;
        got.is_ok_and(|got| got.is_ok_and(|guard| guard.is_some()))
    };
    eventually("it sends its request to the new master", free).await;
    let cli = new.cli().await;
    let guard = in_time(call).await.unwrap().unwrap();
    old.continue_signal();
    let value = cli.value("lock:a").await.expect("it holds at the new master");
    guard.ensure_held().unwrap();
    sentinels.settled().await;
    assert_eq!(old.cli().await.value("lock:a").await, Some(value), "the old one follows");
    guard.release().await.unwrap();
    assert_nothing_left(&sentinels).await;
}

/// Nothing is asked of it and it says nothing: only the sentinels know.
async fn is_left_by_a_waiter(sentinels: &Sentinels, url: String) {
    let manager = LockManager::connect(url).await.unwrap();
    let old = sentinels.master().await;
    let cli = old.cli().await;
    cli.query::<()>(&["SET", "lock:a", "another", "PX", "600000"]).await;
    let waiter = waits(&manager, old, "a").await;
    replicated(sentinels).await;
    old.stop_signal();
    let new = sentinels.failed_over(old).await;
    let cli = new.cli().await;
    let listens =
        async || cli.query::<Vec<String>>(&["PUBSUB", "CHANNELS", "lockattr:*"]).await.len() == 1;
    eventually("it listens to the new master", listens).await;
    wait_until_queued(new, "a").await;
    cli.query::<()>(&["DEL", "lock:a"]).await;
    old.continue_signal();
    let after = manager.acquire("b", LockOptions::new().wait(LIMIT)).await.unwrap();
    assert!(cli.value("lock:b").await.is_some(), "sent to the new master");
    after.release().await.unwrap();
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    sentinels.settled().await;
    assert_nothing_left(sentinels).await;
}

#[tokio::test]
async fn an_old_master_is_left_as_soon_as_a_sentinel_announces_the_new_one() {
    let sentinels = Sentinels::start().await;
    let url = sentinels.url_with("heartbeat=60s");
    is_left_by_a_waiter(&sentinels, url).await;
}

#[tokio::test]
async fn an_old_master_is_left_after_a_heartbeat_if_no_sentinel_announces_the_new_one() {
    let sentinels = Sentinels::start().await;
    let mut proxies = Vec::new();
    for sentinel in sentinels.sentinels() {
        let proxy = Proxy::start(sentinel.addr()).await;
        proxy.always("subscribe", Fault::Answer("NOPERM no permissions".into()));
        proxies.push(proxy);
    }
    let hosts: Vec<_> = proxies.iter().map(Proxy::addr).collect();
    let hosts = hosts.join(",");
    let url = format!("redis+sentinel://{hosts}/lockattr?response_timeout=60s&heartbeat=1s");
    is_left_by_a_waiter(&sentinels, url).await;
}
