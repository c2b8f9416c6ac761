//! Many callers at once. Requests wait in this process until the server has answered others; that
//! is not the server's silence.

use std::sync::Arc;

use lockattr_tests::Engine;
use tokio::task::JoinSet;

use super::*;
use crate::crowd;

async fn locks(server: &PostgresServer) -> i64 {
    let count = "select count(*) from pg_locks where locktype = 'advisory'";
    server.client().await.query_one(count, &[]).await.unwrap().get(0)
}

/// A thousand requests at once, over one connection to a slow disk.
///
/// Red without: the limit of what is in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_lose_no_lock_and_no_release() {
    // Of 32 tokens, one is written to the disk.
    let server = PostgresServer::with_slow_commits(100_000).await;
    // Shorter than a thousand statements take on one connection, one after the other.
    let query = "lock=session&connections=1&response_timeout=3s";
    let manager = manager(&server.url_with(query)).await;
    crowd::loses_nothing(&manager, Duration::from_secs(15)).await;
    assert_eq!(locks(&server).await, 0);
}

/// Red without: the keys in `Refusals`, or what `no_response` says without a refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_in_the_crowd_learns_of_no_holder() {
    let server = PostgresServer::with_slow_commits(40_000).await;
    // Each statement takes 64 of them, so all of them would need more than a second.
    let url = server.url_with("lock=session&wait=1s&connections=1");
    crowd::learns_of_no_holder(&manager(&url).await).await;
    eventually("nothing is left", async || locks(&server).await == 0).await;
}

/// Claims that share a statement share its number, which is greater than those of all earlier
/// holders of their locks.
///
/// Red without: the number in `TRY_MANY`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fencing_tokens_grow_in_statements_of_many_claims() {
    const KEYS: usize = 40;
    let database = Database::new().await;
    let managers = [database.sessions("").await, database.sessions("").await];
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
