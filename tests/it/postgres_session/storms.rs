//! Many callers at once. Requests wait in this process until the server has answered others; that
//! is not the server's silence.

use std::sync::Arc;

use lockattr::Error;
use lockattr_tests::Engine;
use tokio::task::JoinSet;

use super::*;

/// A server whose commits take this many microseconds at least. Each acquisition is a commit.
async fn slow_server(commit_delay: u32) -> PostgresServer {
    let server = PostgresServer::start().await;
    for setting in ["fsync = on", "commit_siblings = 0"] {
        server.run(&format!("alter system set {setting}")).await;
    }
    server.run(&format!("alter system set commit_delay = {commit_delay}")).await;
    server.run("select pg_reload_conf()").await;
    server
}

async fn locks(server: &PostgresServer) -> i64 {
    let count = "select count(*) from pg_locks where locktype = 'advisory'";
    server.client().await.query_one(count, &[]).await.unwrap().get(0)
}

/// Red without: the limit of what is in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_lose_no_lock_and_no_release() {
    let server = slow_server(4_000).await;
    // Shorter than a thousand commits take, one after the other.
    let query = "lock=session&wait=60s&response_timeout=1s&connect_timeout=10s";
    let manager = Arc::new(manager(&format!("{}?{query}", server.url())).await);
    let mut held = Vec::new();
    for n in 0..20 {
        let options = LockOptions::new().ttl(Duration::from_secs(3));
        held.push(manager.acquire(format!("held {n}"), options).await.unwrap());
    }
    let mut tasks = JoinSet::new();
    for n in 0..1_000 {
        let manager = manager.clone();
        tasks.spawn(async move {
            for _ in 0..4 {
                let guard = acquire(&manager, &format!("key {n}")).await;
                guard.release().await.unwrap_or_else(|error| panic!("key {n}: {error}"));
            }
        });
    }
    tasks.join_all().await;
    for guard in held {
        guard.ensure_held().expect("renewed before all others");
        guard.release().await.expect("ours");
    }
    assert_eq!(locks(&server).await, 0);
}

/// A caller whose wait ends while its request still waits here has met a busy server, and no outage.
///
/// Red without: `answered_since`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_in_the_crowd_is_contended() {
    let server = slow_server(40_000).await;
    let url = format!("{}?lock=session&wait=1s&connections=1", server.url());
    let manager = Arc::new(manager(&url).await);
    let mut tasks = JoinSet::new();
    // Each statement takes 64 of them, so all of them would need more than a second.
    for n in 0..3_000 {
        let manager = manager.clone();
        tasks.spawn(async move {
            match manager.acquire(format!("key {n}"), LockOptions::new()).await {
                Ok(guard) => guard.release().await.map(|()| true),
                Err(Error::Contended { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        });
    }
    let outcomes: Result<Vec<_>, _> = tasks.join_all().await.into_iter().collect();
    let granted = outcomes.unwrap_or_else(|error| panic!("{error}"));
    assert!(granted.contains(&true) && granted.contains(&false));
    eventually(SOON, "nothing is left", async || locks(&server).await == 0).await;
}

/// Claims that share a statement share its number, which is greater than those of all earlier
/// holders of their locks.
///
/// Red without: the number in `TRY_MANY`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fencing_tokens_grow_in_statements_of_many_claims() {
    const KEYS: usize = 40;
    let database = Database::new().await;
    let managers = [database.sessions("wait=60s").await, database.sessions("wait=60s").await];
    let last: Arc<Vec<_>> = Arc::new((0..KEYS).map(|_| std::sync::Mutex::new(None)).collect());
    let mut tasks = JoinSet::new();
    for (nth, manager) in managers.iter().cycle().take(4).enumerate() {
        for key in 0..KEYS {
            let (manager, last) = (manager.clone(), last.clone());
            tasks.spawn(async move {
                for _ in 0..10 {
                    let tried = manager.try_acquire(format!("key {key}"), LockOptions::new()).await;
                    let Some(guard) = tried.unwrap() else {
                        tokio::task::yield_now().await;
                        continue;
                    };
                    let earlier = last[key].lock().unwrap().replace(guard.fencing_token());
                    assert!(earlier < Some(guard.fencing_token()), "{nth} {key}: {earlier:?}");
                    guard.release().await.unwrap();
                }
            });
        }
    }
    tasks.join_all().await;
    database.nobody_locks().await;
}
