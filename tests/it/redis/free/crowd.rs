//! Many tasks at once: their commands are batched, and none is lost.

use std::collections::BTreeSet;

use futures_util::future::{join_all, try_join_all};
use lockattr::{Error, LockGuard, Mode};
use lockattr_tests::{Fault, Proxy};
use tokio::task::{JoinSet, yield_now};

use super::*;

const TASKS: usize = 64;

/// Each task acquires its own lock `times` times, over a server that always answers. Returns their
/// tokens.
async fn crowd(manager: &LockManager, times: usize) -> Vec<Vec<u64>> {
    crowd_over(manager, times, true).await
}

/// The same over a server that `outcomes` or not.
async fn crowd_over(manager: &LockManager, times: usize, outcomes: bool) -> Vec<Vec<u64>> {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let manager = manager.clone();
        tasks.spawn(async move {
            let (key, mut tokens) = (format!("own:{task}"), Vec::new());
            while tokens.len() < times {
                match manager.acquire(&key, LockOptions::new()).await {
                    Ok(guard) => {
                        tokens.push(guard.fencing_token().get());
                        // Without an answer, the manager retries.
                        let released = guard.release().await;
                        assert!(released.is_ok() || !outcomes, "{released:?}");
                    }
                    Err(Error::Store { .. }) if !outcomes => yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
            tokens
        });
    }
    tasks.join_all().await
}

/// Asserts that each key's tokens grow, and that no token occurs twice.
fn assert_numbered(tokens: &[Vec<u64>]) {
    for of_a_key in tokens {
        assert!(of_a_key.is_sorted_by(|one, next| one < next), "{of_a_key:?}");
    }
    let all: BTreeSet<_> = tokens.iter().flatten().collect();
    assert_eq!(all.len(), tokens.iter().map(Vec::len).sum::<usize>());
}

#[tokio::test]
async fn requests_sent_together_share_one_increment() {
    const TIMES: usize = 10;
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server, PATIENT).await);
    round(&manager).await;
    let tokens = crowd(&manager, TIMES).await;
    assert_numbered(&tokens);
    let counted = calls(&cli, "incr").await + calls(&cli, "incrby").await;
    let (each, all) = (TASKS * TIMES, counted as usize);
    assert!((1..each / 4).contains(&all), "{all} counts for {each} acquisitions");
    // Scripts ran only for releases, and one script released many locks.
    let scripts = calls(&cli, "evalsha").await as usize;
    assert!(scripts < each / 4, "{scripts} scripts for {each} acquisitions");
    assert_eq!(calls(&cli, "set").await as usize, each + 2, "and the first one");
    assert_nothing_left(&server).await;
}

/// The server forgets the script that releases locks.
#[tokio::test]
async fn a_crowd_survives_that_the_server_forgets_its_scripts() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server, PATIENT).await);
    for _ in 0..5 {
        cli.query::<()>(&["SCRIPT", "FLUSH"]).await;
        assert_numbered(&crowd(&manager, 3).await);
    }
    assert_nothing_left(&server).await;
}

/// Releases all of them at the same time, each in its own task. Returns the results.
async fn release_together(held: Vec<LockGuard>) -> Vec<Result<(), Error>> {
    join_all(held.into_iter().map(LockGuard::release)).await
}

/// While a crowd releases, another program overwrites one of its locks and replaces another by a
/// list.
#[tokio::test]
async fn the_loss_of_one_lock_of_a_crowd_is_reported_to_its_holder_alone() {
    const WRITTEN: usize = 20;
    const LISTED: usize = 21;
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server, PATIENT).await);
    let own = |task| manager.acquire(format!("own:{task}"), LockOptions::new());
    let held = try_join_all((0..TASKS).map(own)).await.unwrap();
    cli.query::<()>(&["SET", "lock:own:20", "a stranger's"]).await;
    cli.query::<()>(&["DEL", "lock:own:21"]).await;
    cli.query::<()>(&["RPUSH", "lock:own:21", "a stranger's"]).await;
    for (task, outcome) in release_together(held).await.into_iter().enumerate() {
        match outcome {
            Err(Error::Lost { .. }) if [WRITTEN, LISTED].contains(&task) => {}
            Ok(()) if ![WRITTEN, LISTED].contains(&task) => {}
            outcome => panic!("{task}: {outcome:?}"),
        }
    }
    let mut left: Vec<String> = cli.query(&["KEYS", "lock:*"]).await;
    left.sort();
    assert_eq!(left, ["lock:own:20", "lock:own:21"]);
    assert_eq!(cli.query::<String>(&["GET", "lock:own:20"]).await, "a stranger's");
}

/// A user may acquire one of the locks but not release it: the server refuses each script that
/// names it.
#[tokio::test]
async fn a_lock_that_its_user_may_not_delete_keeps_no_other_from_its_release() {
    const FORBIDDEN: usize = 20;
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server, PATIENT).await);
    let own = |task| manager.acquire(format!("own:{task}"), LockOptions::new());
    let held = try_join_all((0..TASKS).map(own)).await.unwrap();
    let mut rights = vec!["ACL", "SETUSER", "default", "resetkeys", "~lockattr:*"];
    let others: Vec<_> = (0..TASKS).filter(|task| *task != FORBIDDEN).collect();
    let others: Vec<_> = others.iter().map(|task| format!("~lock:own:{task}")).collect();
    rights.extend(others.iter().map(String::as_str));
    cli.query::<()>(&rights).await;
    for (task, outcome) in release_together(held).await.into_iter().enumerate() {
        assert_eq!(outcome.is_err(), task == FORBIDDEN, "{task}: {outcome:?}");
    }
    assert_eq!(cli.query::<Vec<String>>(&["KEYS", "lock:*"]).await, ["lock:own:20"]);
    cli.query::<()>(&["ACL", "SETUSER", "default", "~*"]).await;
    drop(manager);
    assert_nothing_left(&server).await;
}

/// A claim asks for a lock after the command that releases it, both in one pipeline.
#[tokio::test]
async fn a_released_lock_is_acquired_again_in_the_same_pipeline() {
    let server = RedisServer::start().await;
    let (cli, claims) = (server.cli().await, Claims::new(&server));
    let own = |task| claims.claim(&[&format!("own:{task}")], Sharing::Exclusive);
    let (old, new): (Vec<_>, Vec<_>) = (0..TASKS).map(|task| (own(task), own(task))).unzip();
    for claim in &old {
        assert!(claims.asks(claim, LONG).await);
    }
    let before = calls(&cli, "evalsha").await;
    let both = old.iter().zip(&new).map(|(old, new)| {
        let released = claims.releases(ReleaseRequest::new(old.clone()));
        async { tokio::join!(released, claims.asks(new, LONG)) }
    });
    assert_eq!(join_all(both).await, [(ReleaseOutcome::Released, true); TASKS]);
    let scripts = calls(&cli, "evalsha").await - before;
    assert!(scripts < TASKS as u64 / 4, "{scripts} scripts");
    for (task, new) in new.into_iter().enumerate() {
        let held = cli.held_value(&format!("lock:own:{task}")).await;
        assert_eq!(held.as_deref(), Some(new.value()));
        assert_eq!(claims.releases(ReleaseRequest::new(new)).await, ReleaseOutcome::Released);
    }
    assert_nothing_left(&server).await;
}

/// Callers give up while their command is queued, on its way, or answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_waiter_that_gives_up_in_a_crowd_leaves_nothing() {
    let server = RedisServer::start().await;
    let manager = manager(&server, PATIENT).await;
    round(&manager).await;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let manager = manager.clone();
        tasks.spawn(async move {
            for turns in 0..40 {
                let (manager, key) = (manager.clone(), format!("own:{task}"));
                let asks = tokio::spawn(async move {
                    let guard = manager.acquire(&key, LockOptions::new()).await;
                    guard.unwrap().release().await.unwrap();
                });
                for _ in 0..(turns * 7 + task) % 40 {
                    yield_now().await;
                }
                asks.abort();
                if let Err(error) = asks.await {
                    assert!(error.is_cancelled(), "{error}");
                }
            }
        });
    }
    tasks.join_all().await;
    let cli = server.cli().await;
    let free = async || cli.query::<Vec<String>>(&["KEYS", "lock:*"]).await.is_empty();
    eventually("all locks are free, long before their leases end", free).await;
    assert_numbered(&crowd(&manager, 2).await);
    drop(manager);
    assert_nothing_left(&server).await;
}

/// The proxy holds back a batch's number until it cuts the connection, so each cut loses a whole
/// batch that the server may have executed.
#[tokio::test]
async fn a_crowd_whose_connection_is_cut_continues_over_the_next() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), "ttl=1h&wait=10h");
    let manager = LockManager::connect(url).await.unwrap();
    let cuts = async {
        for _ in 0..5 {
            let seen = proxy.seen("incrby");
            proxy.next("incrby", Fault::HoldReply);
            eventually("a batch is on its way", async || proxy.seen("incrby") > seen).await;
            proxy.cut().await;
        }
    };
    let (tokens, ()) = tokio::join!(crowd_over(&manager, 40, false), cuts);
    assert_numbered(&tokens);
    drop(manager);
    assert_nothing_left(&server).await;
}

/// A user that may count by one but not by many.
#[tokio::test]
async fn a_crowd_without_the_right_to_incr_uses_scripts() {
    let rights = crate::redis::RIGHTS.replace(" +incrby", "");
    let server = RedisServer::builder().user("locker", "s3cret", &rights).start().await;
    let manager = LockManager::connect(server.url_as("locker", "s3cret")).await.unwrap();
    assert_numbered(&crowd(&manager, 5).await);
    assert_nothing_left(&server).await;
}

/// A cached lock that does not fit is released before the store is asked for the next one.
#[tokio::test]
async fn a_release_in_a_crowd_is_sent_before_a_script_that_comes_later() {
    let server = RedisServer::start().await;
    let manager = manager(&server, "linger=30m").await;
    round(&manager).await;
    let mut set = JoinSet::new();
    for task in 0..TASKS {
        let manager = manager.clone();
        set.spawn(async move {
            let (key, mut refused) = (format!("own:{task}"), 0);
            for _ in 0..20 {
                drop(manager.acquire(&key, LockOptions::new()).await.unwrap());
                let shared = LockOptions::new().mode(Mode::Shared);
                match manager.try_acquire(&key, shared).await.unwrap() {
                    Some(guard) => guard.release().await.unwrap(),
                    None => refused += 1,
                }
            }
            refused
        });
    }
    assert_eq!(set.join_all().await.into_iter().sum::<usize>(), 0);
}
