//! A master that was replaced without noticing and still answers.

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{
    Fault, Proxy, Sentinels, assert_nothing_left, eventually, in_time, patient, with_query,
};

use super::{replicated, wait_until_queued, waits};

/// A question that it has not answered is asked of the new one; what it answers when it thaws does not count.
#[tokio::test]
async fn replies_of_a_resumed_old_master_do_not_count() {
    let sentinels = Sentinels::start().await;
    // Only the sentinels end a request that it does not answer.
    let url = sentinels.url_with("connections=1&heartbeat=1h&response_timeout=1h");
    let manager = LockManager::connect(url).await.unwrap();
    let old = sentinels.master().await;
    old.stop_signal();
    let call = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire("a", LockOptions::new()).await }
    });
    let new = sentinels.failed_over(old).await;
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
    let after = in_time(manager.acquire("b", LockOptions::new())).await.unwrap();
    assert!(cli.value("lock:b").await.is_some(), "sent to the new master");
    after.release().await.unwrap();
    drop(in_time(waiter).await.unwrap().expect("it waits at the new master"));
    sentinels.settled().await;
    assert_nothing_left(sentinels).await;
}

#[tokio::test]
async fn an_old_master_is_left_as_soon_as_a_sentinel_announces_the_new_one() {
    let sentinels = Sentinels::start().await;
    let url = sentinels.url_with("heartbeat=1h&response_timeout=1h");
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
    let url = patient(&format!("redis+sentinel://{}/lockattr", hosts.join(",")));
    let url = with_query(&url, "heartbeat=1s&response_timeout=1h");
    is_left_by_a_waiter(&sentinels, url).await;
}
