//! Many callers of one process whose wait budgets end at the same moment, over a healthy server and
//! over a silent one.

use lockattr::{Error, Mode};
use lockattr_tests::{Proxy, RedisServer, in_time, with_query};

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
        let options = options.wait(Duration::from_secs(2));
        for _ in 0..CROWD {
            let (next, options) = (next.clone(), options.clone());
            crowd.spawn(async move { next.acquire("a", options).await.map(drop) });
        }
        while let Some(refused) = crowd.join_next().await {
            let error = refused.unwrap().unwrap_err();
            assert!(matches!(error, Error::Contended { holder: Some(_), .. }), "{error}");
        }
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

/// The wait ends before the answer comes, while the server answers others: it is busy, not away.
#[tokio::test]
async fn a_late_answer_from_a_server_that_answers_others_is_contention() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(
        &server.url_through(&proxy),
        &format!("connections=1&response_timeout=5s&{LONG}"),
    );
    let manager = LockManager::connect(&url).await.unwrap();
    // The answer takes longer than the caller waits, while others get many answers.
    proxy.delay(Duration::from_millis(800));
    let busy = {
        let manager = manager.clone();
        tokio::spawn(async move {
            for round in 0.. {
                let (manager, key) = (manager.clone(), format!("other {round}"));
                tokio::spawn(
                    async move { manager.acquire(key, LockOptions::new()).await.map(drop) },
                );
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        })
    };
    let answered = async || proxy.answered("acquire") > 10;
    eventually("replies arrive", answered).await;
    let hasty = LockOptions::new().wait(Duration::from_secs(1));
    let error = manager.acquire("a", hasty.clone()).await.unwrap_err();
    assert!(matches!(error, Error::Contended { .. }), "{error}");
    busy.abort();
    let cli = server.cli().await;
    let quiet = async || {
        let held: Vec<String> = cli.query(&["KEYS", "lock:*"]).await;
        let answered = |what| proxy.answered(what) == proxy.seen(what);
        held.is_empty() && answered("acquire") && answered("release")
    };
    eventually("all is answered", quiet).await;
    // If all are silent, the outcome is unknown.
    proxy.swallow_replies();
    let error = manager.acquire("b", hasty).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error}");
    proxy.pass();
    drop(manager);
    assert_no_trace(&server).await;
}
