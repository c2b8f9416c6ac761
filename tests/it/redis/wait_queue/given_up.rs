//! Waiters that stop waiting: at their deadline, when dropped, or when dropped right after their
//! grant.

use std::pin::Pin;

use lockattr::Error;
use lockattr_tests::{Fault, Proxy, RedisServer, StoppedClock, eventually, skip, with_query};

use super::*;

/// Polls a waiter until `count` waiters are queued, and then no more.
async fn poll_until_queued<F: Future>(waiter: Pin<&mut F>, cli: &Cli, count: usize) {
    tokio::select! {
        biased;
        () = wait_until_queued(cli, count) => {}
        _ = waiter => panic!("it got in"),
    }
}

/// Its grant is in the store, and the notification is sent or about to be sent.
#[tokio::test]
async fn a_waiter_dropped_at_the_moment_of_its_grant_passes_it_on() {
    for notified in [false, true] {
        let server = RedisServer::start().await;
        let (cli, witness) = (server.cli().await, Witness::default());
        let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
        let proxy = Proxy::start(server.addr()).await;
        let url = with_query(&server.url_through(&proxy), LONG);
        let fickle = LockManager::connect(url).await.unwrap();
        let holder = acquire(&first).await;
        let mut waiter = Box::pin(fickle.acquire("a", LockOptions::new()));
        poll_until_queued(waiter.as_mut(), &cli, 1).await;
        // One waiter behind it in its process, and another process behind that.
        let crowds = vec![crowd(&fickle, &witness, 1), crowd(&next, &witness, 3)];
        wait_until_queued(&cli, 2).await;
        if !notified {
            proxy.freeze();
        }
        witness.saw(holder.fencing_token());
        holder.release().await.unwrap();
        wait_until_queued(&cli, 1).await;
        if notified {
            eventually("notified", async || proxy.answered("message") == 1).await;
        }
        drop(waiter);
        proxy.pass();
        all_have_worked(crowds).await;
        assert_eq!(witness.count(), 4);
        drop((first, next, fickle));
        assert_no_trace(&server).await;
    }
}

#[tokio::test]
async fn a_waiter_that_gives_up_or_is_dropped_leaves_its_place_in_the_queue() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let (first, fickle) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let holder = acquire(&first).await;
    let clock = StoppedClock::new();
    let soon = LockOptions::new().wait(Duration::from_millis(200));
    let gives_up = {
        let fickle = fickle.clone();
        tokio::spawn(async move { fickle.acquire("a", soon).await.map(drop) })
    };
    wait_until_queued(&cli, 1).await;
    clock.advance(Duration::from_millis(200));
    let error = gives_up.await.unwrap().unwrap_err();
    drop(clock);
    assert!(matches!(error, Error::Contended { holder: Some(_), .. }), "{error}");
    wait_until_queued(&cli, 0).await;

    // The next waiter of its own process takes over.
    let mut waiter = Box::pin(fickle.acquire("a", LockOptions::new()));
    poll_until_queued(waiter.as_mut(), &cli, 1).await;
    let crowds = vec![crowd(&fickle, &witness, 2)];
    drop(waiter);
    let waiter = tokio::spawn({
        let fickle = fickle.clone();
        async move { fickle.acquire("a", LockOptions::new()).await.map(drop) }
    });
    tokio::task::yield_now().await;
    waiter.abort();
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    all_have_worked(crowds).await;
    assert_eq!(witness.count(), 2);
    wait_until_queued(&cli, 0).await;
    drop((first, fickle));
    assert_no_trace(&server).await;
}

/// The request to leave the queue is lost in several ways, and is repeated.
#[tokio::test]
async fn a_waiter_whose_request_to_leave_is_lost_leaves_all_the_same() {
    for fault in [Fault::SwallowRequest, Fault::CutBefore, Fault::HalfOpen] {
        let server = RedisServer::start().await;
        let (cli, witness) = (server.cli().await, Witness::default());
        let proxy = Proxy::start(server.addr()).await;
        let url = with_query(&server.url_through(&proxy), LONG);
        let fickle = LockManager::connect(url).await.unwrap();
        let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
        let holder = acquire(&first).await;
        let mut waiter = Box::pin(fickle.acquire("a", LockOptions::new()));
        poll_until_queued(waiter.as_mut(), &cli, 1).await;
        let crowds = vec![crowd(&next, &witness, 3)];
        wait_until_queued(&cli, 2).await;
        proxy.next("release", fault.clone());
        drop(waiter);
        eventually("it sends its release", async || proxy.seen("release") > 0).await;
        // Longer than the response timeout.
        skip(Duration::from_secs(90));
        eventually("it repeats its release", async || proxy.seen("release") > 1).await;
        // Then its connection is pinged, and replaced after as long.
        if !matches!(fault, Fault::CutBefore) {
            eventually("it pings", async || proxy.seen("ping") > 0).await;
            skip(Duration::from_secs(90));
        }
        wait_until_queued(&cli, 1).await;
        witness.saw(holder.fencing_token());
        holder.release().await.unwrap();
        all_have_worked(crowds).await;
        assert_eq!(witness.count(), 3, "{fault:?}");
        drop((first, next, fickle));
        assert_no_trace(&server).await;
    }
}
