//! Many callers of one process whose wait budgets end at the same moment, over a healthy server and
//! over a silent one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockattr::{Error, Mode};
use lockattr_tests::{
    Fault, Proxy, RedisServer, StoppedClock, eventually, in_time, skip, with_query,
};

use super::*;

const CROWD: usize = 10_000;

/// All callers are refused because the lock is taken, and their process asks the store no more
/// often than for one of them.
#[tokio::test]
async fn ten_thousand_callers_whose_wait_ends_together_are_all_contended() {
    let modes =
        [LockOptions::new(), LockOptions::new().mode(Mode::Shared), LockOptions::new().permits(3)];
    for options in modes {
        let server = RedisServer::start().await;
        let first = manager(&server, LONG).await;
        let holder = acquire(&first).await;
        let proxy = Proxy::start(server.addr()).await;
        let query = format!("{LONG}&retry_delay=1s");
        let next = LockManager::connect(with_query(&server.url_through(&proxy), &query)).await;
        let (next, mut crowd) = (next.unwrap(), JoinSet::new());
        // However long the callers take to begin, their waits end together, and no answer is late.
        let clock = StoppedClock::new();
        let options = options.wait(Duration::from_secs(2));
        let waiting = Arc::<AtomicUsize>::default();
        for _ in 0..CROWD {
            let (next, options, waiting) = (next.clone(), options.clone(), waiting.clone());
            crowd.spawn(async move {
                waiting.fetch_add(1, Ordering::Relaxed);
                next.acquire("a", options).await.map(drop)
            });
        }
        eventually("all wait", async || waiting.load(Ordering::Relaxed) == CROWD).await;
        wait_until_queued(&server.cli().await, 1).await;
        clock.advance(Duration::from_secs(1));
        clock.advance(Duration::from_secs(2));
        while let Some(refused) = in_time(crowd.join_next()).await {
            let error = refused.unwrap().unwrap_err();
            assert!(matches!(error, Error::Contended { holder: Some(_), .. }), "{error}");
        }
        drop(clock);
        // The first caller's requests, its regular rechecks, and a few of those that could share
        // the lock.
        assert!(proxy.seen("acquire") < 60, "{} requests", proxy.seen("acquire"));
        holder.release().await.unwrap();
        drop((first, next));
        assert_no_trace(&server).await;
    }
}

/// A writer of another process waits behind forty readers of one process. The readers share a place
/// in the queue and get in together, before the writer.
#[tokio::test]
async fn readers_of_one_process_share_its_place_before_a_writer_that_came_later() {
    let shared = LockOptions::new().mode(Mode::Shared);
    for options in [shared, LockOptions::new().permits(40)] {
        let server = RedisServer::start().await;
        let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
        let cli = server.cli().await;
        let holder = acquire(&first).await;
        let mut readers = JoinSet::new();
        for nth in 0..40 {
            let (next, options) = (next.clone(), options.clone());
            readers.spawn(async move { next.acquire("a", options).await.unwrap() });
            if nth == 0 {
                // The others learn from it that the lock is taken, and ask nothing.
                wait_until_queued(&cli, 1).await;
            }
        }
        let writer = work(&manager(&server, LONG).await, &Witness::default());
        wait_until_queued(&cli, 2).await;
        holder.release().await.unwrap();
        let what = format!("all of them get in: {options:?}");
        eventually(&what, async || cli.query::<usize>(&["ZCARD", "lock:a"]).await == 40).await;
        let inside = in_time(readers.join_all()).await;
        assert!(!writer.is_finished(), "they arrived first");
        for guard in inside {
            guard.ensure_held().unwrap();
            guard.release().await.unwrap();
        }
        in_time(writer).await.unwrap();
        drop((first, next));
        assert_no_trace(&server).await;
    }
}

/// The wait ends before the answer comes, while the server answers others, about other locks.
///
/// Red without: the keys in `Refusals`, or what `no_response` says without a refusal.
#[tokio::test]
async fn a_late_answer_is_no_holder_although_the_server_answers_others() {
    const SECOND: Duration = Duration::from_secs(1);
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), &format!("connections=1&{LONG}"));
    let manager = LockManager::connect(&url).await.unwrap();
    let acquires = |key: &'static str, options: LockOptions| {
        let manager = manager.clone();
        tokio::spawn(async move { manager.acquire(key, options).await })
    };
    let hasty = || LockOptions::new().wait(SECOND);
    // The other's answer comes after the caller has asked, and before its wait ends.
    proxy.next("acquire", Fault::HoldReply);
    let other = acquires("other", LockOptions::new());
    eventually("the other asks", async || proxy.seen("acquire") == 1).await;
    let clock = StoppedClock::new();
    proxy.next("acquire", Fault::Delay(3600 * SECOND));
    let late = acquires("a", hasty());
    eventually("it asks", async || proxy.seen("acquire") == 2).await;
    clock.advance(SECOND / 2);
    proxy.pass();
    drop(in_time(other).await.unwrap().unwrap());
    clock.advance(SECOND);
    let error = in_time(late).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error}");
    drop(clock);
    proxy.cut().await;
    assert_nothing_left(&server).await;
    drop((proxy, manager));
    assert_no_trace(&server).await;
}

/// The same from a server that answers nothing else either: the outcome is unknown.
#[tokio::test]
async fn a_late_answer_from_a_server_that_answers_nothing_is_an_outage() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), &format!("connections=1&{LONG}"));
    let manager = LockManager::connect(&url).await.unwrap();
    // It is the only request, so no answer to another can come after it was sent.
    proxy.swallow_replies();
    let silent = {
        let (manager, hasty) = (manager.clone(), LockOptions::new().wait(Duration::from_secs(1)));
        tokio::spawn(async move { manager.acquire("a", hasty).await })
    };
    eventually("it asks", async || proxy.seen("acquire") == 1).await;
    skip(Duration::from_secs(2));
    let error = in_time(silent).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error}");
    proxy.pass();
    proxy.cut().await;
    drop(manager);
    assert_no_trace(&server).await;
}
