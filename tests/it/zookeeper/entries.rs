//! Entries whose outcome is unknown, and entries that only look like ours.

use std::pin::pin;

use lockattr_tests::{Wire, Wires, for_store, in_time};

use super::*;

/// Returns wires to an ensemble, and the URL of a store over them that has a node of its own.
async fn over_wires(ensemble: &ZooKeeper) -> (Wires, String) {
    let wires = Wires::before(ensemble).await;
    let addrs: Vec<_> = wires.each().iter().map(Wire::addr).collect();
    let url = ensemble.url_below(&addrs, &ensemble.chroot_apart());
    (wires, url)
}

/// Acquires over wires that carry no reply, and cuts them once the entry is made.
async fn is_made_without_a_reply(
    store: &impl Store,
    request: &AcquireRequest,
    wires: &Wires,
    is_made: impl AsyncFnMut() -> bool,
) {
    wires.swallow_replies();
    let cut = async {
        eventually("it is made", is_made).await;
        wires.cut().await;
    };
    let (answer, ()) = tokio::join!(store.acquire(request), cut);
    assert!(answer.is_err(), "a reply arrived: {answer:?}");
    wires.pass().await;
}

/// One of the two permits of `a`.
fn permit(subscriber: &Subscriber) -> Arc<Claim> {
    let key = LockKey::new("lock:", "a").unwrap();
    Arc::new(Claim::of(subscriber, key, [], Sharing::Permits(2), "service=test"))
}

#[tokio::test]
async fn a_lost_create_reply_is_found_again() {
    let ensemble = ZooKeeper::shared().await;
    let (wires, url) = over_wires(ensemble).await;
    let store = ZookeeperStore::open(&for_store(&url)).unwrap();
    store.ping().await.unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    store.subscribe(&subscriber);
    let (other, lost) = (permit(&subscriber), permit(&subscriber));
    // Creates the lock's node and keeps it, so that the create of the entry is the only request.
    assert!(asks(&store, &other).await);

    let request = AcquireRequest::new(lost.clone(), TTL);
    let made = async || line(ensemble, &url, "a").await.len() == 2;
    is_made_without_a_reply(&store, &request, &wires, made).await;
    let again =
        async || matches!(store.acquire(&request).await, Ok(AcquireOutcome::Acquired { .. }));
    eventually("it is found", again).await;
    assert_eq!(line(ensemble, &url, "a").await.len(), 2, "made twice");
    assert!(releases(&store, &lost).await);
    assert!(releases(&store, &other).await);
    drop(store);
    nothing_is_left(ensemble, &url).await;
}

/// The outcome of two entries is unknown, and one of them is removed by hand before they are found.
#[tokio::test]
async fn a_part_of_an_unknown_outcome_is_not_taken_for_the_whole() {
    let ensemble = ZooKeeper::shared().await;
    let (wires, url) = over_wires(ensemble).await;
    let store = ZookeeperStore::open(&for_store(&url)).unwrap();
    store.ping().await.unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    store.subscribe(&subscriber);
    let key = |name| LockKey::new("lock:", name).unwrap();
    let shared = Sharing::Permits(2);
    let both = || Arc::new(Claim::of(&subscriber, key("a"), [key("b")], shared, "service=test"));
    // Creates the locks' nodes and keeps them.
    let other = both();
    let request = AcquireRequest::new(other.clone(), TTL);
    assert!(matches!(store.acquire(&request).await, Ok(AcquireOutcome::Acquired { .. })));
    for removed in ["a", "b"] {
        let lost = both();
        let (token, _) = lost.value().split_once(' ').expect("a token");
        let made = async |key| {
            let entries = line(ensemble, &url, key).await;
            entries.into_iter().filter(|entry| entry.contains(token)).collect::<Vec<_>>()
        };
        let request = AcquireRequest::new(lost.clone(), TTL);
        let is_made = async || {
            let entries = made(removed).await;
            if let [entry] = &entries[..] {
                ensemble.delete(entry).await;
            }
            !entries.is_empty()
        };
        is_made_without_a_reply(&store, &request, &wires, is_made).await;
        let again =
            async || matches!(store.acquire(&request).await, Ok(AcquireOutcome::Acquired { .. }));
        eventually("it is requested again", again).await;
        for key in ["a", "b"] {
            assert_eq!(made(key).await.len(), 1, "without {removed}: {key}");
        }
        assert!(releases(&store, &lost).await);
        assert!(holds(&store, &other).await);
    }
    assert!(releases(&store, &other).await);
    drop(store);
    nothing_is_left(ensemble, &url).await;
}

#[tokio::test]
async fn a_lost_create_reply_is_undone_by_a_release() {
    let ensemble = ZooKeeper::shared().await;
    let (wires, url) = over_wires(ensemble).await;
    let store = ZookeeperStore::open(&for_store(&url)).unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    store.subscribe(&subscriber);
    let (other, lost, next) = (permit(&subscriber), permit(&subscriber), permit(&subscriber));
    // Creates the lock's node and keeps it, so that the create of the entry is the only request.
    assert!(asks(&store, &other).await);

    let made = async || line(ensemble, &url, "a").await.len() == 2;
    is_made_without_a_reply(&store, &AcquireRequest::new(lost.clone(), TTL), &wires, made).await;
    let answered = async || store.release(&[ReleaseRequest::new(lost.clone())]).await[0].is_ok();
    eventually("it is undone", answered).await;
    assert_eq!(line(ensemble, &url, "a").await.len(), 1, "not undone");
    assert!(asks(&store, &next).await);
    drop(store);
    nothing_is_left(ensemble, &url).await;
}

/// The node of an earlier session, which the servers are about to remove, is not ours
/// (CURATOR-604).
#[tokio::test]
async fn an_entry_of_an_earlier_session_is_not_taken_for_ours() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let earlier = ZookeeperStore::open(&for_store(&url)).unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    let same = claim(&subscriber, "a");
    assert!(asks(&earlier, &same).await);

    // The same claim over another session. As far as it knows, its first reply was lost: it was
    // asked when no server was reachable.
    let store = ZookeeperStore::open(&for_store(&url)).unwrap();
    store.subscribe(&subscriber);
    {
        let request = AcquireRequest::new(same.clone(), TTL).waiting(Waiting::Queued);
        let mut call = pin!(store.acquire(&request));
        let polled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(call.as_mut().poll(context).is_pending())
        });
        assert!(polled.await);
    }
    let request = AcquireRequest::new(same.clone(), TTL).waiting(Waiting::Queued);
    let outcome = store.acquire(&request).await.unwrap();
    assert!(
        matches!(outcome, AcquireOutcome::Held { queued: Some(_), .. }),
        "adopted: {outcome:?}"
    );
    assert_eq!(line(ensemble, &url, "a").await.len(), 2);
    let expected = subscriber.subscribe(same.token());
    drop(earlier);
    in_time(expected.next()).await;
    assert!(holds(&store, &same).await);
    drop(store);
    nothing_is_left(ensemble, &url).await;
}

#[tokio::test]
async fn an_acquisition_dropped_at_any_point_leaves_nothing() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let manager = LockManager::connect(&url).await.unwrap();
    for keys in [1, 2] {
        for taken in [false, true] {
            // Dropped at the nth pending poll, until the future completes.
            for nth in 1.. {
                let names: Vec<_> =
                    (0..keys).map(|key| format!("{keys}-{taken}-{nth}-{key}")).collect();
                let held = match taken {
                    true => Some(manager.acquire(&names[0], LockOptions::new()).await.unwrap()),
                    false => None,
                };
                let max_wait = LockOptions::new().wait(Duration::from_millis(300));
                let mut call = Box::pin(manager.acquire_all(&names, max_wait));
                let mut pending = 0;
                let through = std::future::poll_fn(|context| match call.as_mut().poll(context) {
                    std::task::Poll::Ready(_) => std::task::Poll::Ready(true),
                    std::task::Poll::Pending => {
                        pending += 1;
                        match pending < nth {
                            true => std::task::Poll::Pending,
                            false => std::task::Poll::Ready(false),
                        }
                    }
                });
                let through = through.await;
                drop(call);
                drop(held);
                for name in &names {
                    let nothing = async || line(ensemble, &url, name).await.is_empty();
                    eventually("nothing is left of it", nothing).await;
                }
                if through {
                    break;
                }
            }
        }
    }
    drop(manager);
    nothing_is_left(ensemble, &url).await;
}
