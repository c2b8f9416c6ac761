//! Sessions that end.

use lockattr::store::Notification;
use lockattr::{Error, LostReason};
use lockattr_tests::{HUNG, Wire, Wires, for_store, in_time, node, with_query};

use super::*;
use crate::support::works;

#[tokio::test]
async fn a_session_closed_by_the_servers_is_lost_at_once_and_the_next_gets_in() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    // Renewals are a third of ten minutes apart, too late to be the first to notice.
    let here = LockManager::connect(&url).await.unwrap();
    let there = LockManager::connect(&url).await.unwrap();
    // Two locks of one session.
    let held = here.acquire("a", LockOptions::new()).await.unwrap();
    let other = here.acquire("b", LockOptions::new()).await.unwrap();
    let fencing = held.fencing_token();
    let waits = tokio::spawn(async move { there.acquire("a", LockOptions::new()).await });
    eventually("it waits", async || line(ensemble, &url, "a").await.len() == 2).await;

    let entry = line(ensemble, &url, "b").await.remove(0);
    end_session_of(ensemble, &entry).await;
    for lost in [&held, &other] {
        in_time(lost.lost()).await;
        let Err(Error::Lost { reason, .. }) = lost.ensure_held() else { panic!("still held") };
        assert_eq!(reason, LostReason::Taken);
    }
    let next = in_time(waits).await.unwrap().unwrap();
    assert!(next.fencing_token() > fencing);

    // A new session serves the next call.
    let again = here.acquire("b", LockOptions::new()).await.unwrap();
    again.release().await.unwrap();
    assert!(held.release().await.is_err());
    drop((next, other, here));
    nothing_is_left(ensemble, &url).await;
}

#[tokio::test]
async fn a_waiter_joins_the_queue_again_when_its_session_ends() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let held = LockManager::connect(&url).await.unwrap();
    let held = held.acquire("a", LockOptions::new()).await.unwrap();
    // A store without a manager asks again only when it is notified.
    let store = ZookeeperStore::open(&for_store(&url)).unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    store.subscribe(&subscriber);
    let waiter = claim(&subscriber, "a");
    let expected = subscriber.subscribe(waiter.token());
    let request = AcquireRequest::new(waiter.clone(), TTL).waiting(Waiting::Queued);
    let queued = async || {
        let outcome = store.acquire(&request).await;
        matches!(outcome, Ok(AcquireOutcome::Held { queued: Some(_), .. }))
    };
    assert!(queued().await);
    let mut entries = line(ensemble, &url, "a").await;
    entries.sort_by_key(|entry| entry.rsplit('-').next().unwrap().to_owned());
    let entry = entries.pop().unwrap();
    end_session_of(ensemble, &entry).await;
    let notified = in_time(expected.next()).await;
    assert!(matches!(notified, Notification::AskAgain(_)), "{notified:?}");
    // Over a new session.
    eventually("it is queued again", queued).await;
    let again = line(ensemble, &url, "a").await;
    assert!(again.len() == 2 && !again.contains(&entry), "{again:?}");
    held.release().await.unwrap();
    let granted = in_time(expected.next()).await;
    assert!(matches!(granted, Notification::Granted(_)), "{granted:?}");
    drop(store);
    nothing_is_left(ensemble, &url).await;
}

#[tokio::test]
async fn an_entry_that_is_removed_by_hand_is_lost_at_the_next_renewal() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let manager = LockManager::connect(&url).await.unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let entry = line(ensemble, &url, "a").await.remove(0);
    ensemble.delete(&entry).await;
    let Err(Error::Lost { reason, .. }) = held.extend(TTL).await else { panic!("still held") };
    assert_eq!(reason, LostReason::Taken);
    drop((held, manager));
    nothing_is_left(ensemble, &url).await;
}

#[tokio::test]
async fn a_manager_that_is_dropped_closes_its_session() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    // A session that is not closed would outlive this test.
    let manager = LockManager::connect(&url).await.unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    // The guard is leaked. The session's end frees the lock, long before its timeout.
    std::mem::forget(held);
    assert_eq!(line(ensemble, &url, "a").await.len(), 1);
    drop(manager);
    let store = ZookeeperStore::open(&for_store(&url)).unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    store.subscribe(&subscriber);
    let orphan = claim(&subscriber, "b");
    assert!(asks(&store, &orphan).await);
    drop(store);
    let gone = async || line(ensemble, &url, "b").await.is_empty();
    eventually("its session is closed", gone).await;
}

/// ZooKeeper's client has one thread for all connections of a process, and a fork does not copy it.
#[tokio::test]
async fn a_manager_created_in_a_forked_process_is_refused() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let mut node = node!("fork", url = url);
    let mut said = Vec::new();
    while said.last().is_none_or(|line: &String| !line.starts_with("parent holds: ")) {
        let line = node.line_within(HUNG).await;
        said.push(line.unwrap_or_else(|| panic!("it exited or hangs after {said:#?}")));
    }
    assert_eq!(said.last().map(String::as_str), Some("parent holds: Ok(())"));
    let refused = said.iter().find(|line| line.starts_with("copy ended: "));
    let refused = refused.unwrap_or_else(|| panic!("the fork hangs: {said:#?}"));
    assert!(
        refused.contains("InvalidOptions") && refused.contains("was connected to ZooKeeper"),
        "{refused}"
    );
    node.say("go on").await;
    assert_eq!(node.line().await, "parent released");
    assert!(node.finish().await.success());
    // The parent had forgotten a lock, which is held until the session ends.
    for entry in line(ensemble, &url, "parents").await {
        end_session_of(ensemble, &entry).await;
    }
    nothing_is_left(ensemble, &url).await;
}

/// The client takes each later reply for a part of it, and for a sign of life.
///
/// Red without: `note_unanswered`.
#[tokio::test]
async fn a_session_with_a_reply_that_never_ends_is_replaced() {
    let ensemble = ZooKeeper::shared().await;
    let wires = Wires::before(ensemble).await;
    let addrs: Vec<_> = wires.each().iter().map(Wire::addr).collect();
    let url = ensemble.url_below(&addrs, &ensemble.chroot_apart());
    let settings = "session_timeout=4s&ttl=2s&response_timeout=400ms&wait=0s";
    let manager = LockManager::builder().url(with_query(&url, settings)).build().unwrap();
    in_time(async { while !works(&manager).await {} }).await;
    for wire in wires.each() {
        let mut is_next = true;
        wire.mutate(move |bytes| {
            if std::mem::take(&mut is_next) {
                bytes[..4].copy_from_slice(&i32::MAX.to_be_bytes());
            }
        });
    }
    assert!(!works(&manager).await);
    wires.pass().await;
    in_time(async { while !works(&manager).await {} }).await;
}
