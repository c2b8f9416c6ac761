//! A server that answers anything. Only the exact replies that mean a grant, a renewal or a release
//! count as one, nothing panics, and once the server is honest again everything works.
//!
//! `LOCKATTR_SEED` repeats a run's answers; `LOCKATTR_HOSTILE_ROUNDS` makes it longer. The
//! answers about one key depend only on the seed and the key, not on what else is under way.

mod answers;
mod server;

use std::sync::atomic::Ordering;
use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions};
use lockattr_history::seed;
use lockattr_tests::in_time;
use tokio::runtime::Builder;

use crate::support::panics_on;
use server::Hostile;

/// The number of locks that are requested. Two of five are granted; one of the others gets an
/// answer that a lenient parser would take for a grant.
const ROUNDS: u64 = 300;

/// Short timeouts, because many answers never come.
const URL: &str = "connections=2&connect_timeout=250ms&response_timeout=60ms&heartbeat=50ms";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The client relies on `FencingToken::read` and `request::held`, which have tests of their own.
#[test]
fn a_lock_counts_as_held_only_by_a_well_formed_reply() {
    let seed = seed();
    // On named threads, so that a panic in any task can be told from those of other tests.
    let panics = panics_on(THREADS);
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_name(THREADS).enable_all().build().unwrap();
    let call = runtime.spawn(is_asked(seed));
    runtime.block_on(call).unwrap();
    assert_eq!(panics.load(Ordering::SeqCst), 0, "seed {seed}: a task has panicked");
}

const THREADS: &str = "hostile";

async fn is_asked(seed: u64) {
    let server = Hostile::start(seed).await;
    let url = format!("redis://{}/?{URL}", server.addr());
    let manager = LockManager::builder().url(&url).build().unwrap();
    let (mut granted, mut extended, mut released) = (0, 0, 0);
    let rounds = number("LOCKATTR_HOSTILE_ROUNDS").unwrap_or(ROUNDS);
    for round in 0.. {
        // On a busy machine many answers are too late, and fewer rounds show something.
        if round >= rounds && granted > 20 && extended > 2 && released > 2 {
            break;
        }
        let key = format!("{round}");
        let Some(guard) = asks(&manager, &key).await else { continue };
        granted += 1;
        let counter = server.grant_of(&key);
        let counter = counter.unwrap_or_else(|| panic!("seed {seed}: {key} was never granted"));
        assert_eq!(guard.fencing_token().get(), counter << 10, "seed {seed}, {key}");
        if guard.extend(Duration::from_secs(20)).await.is_ok() {
            extended += 1;
            assert!(server.said_yes("renew", &key), "seed {seed}: {key} was not renewed");
        }
        if guard.release().await.is_ok() {
            released += 1;
            assert!(server.said_yes("release", &key), "seed {seed}: {key} was not released");
        }
    }
    server.is_honest_now();
    in_time(async { while !works(&manager).await {} }).await;
}

async fn works(manager: &LockManager) -> bool {
    let Some(guard) = asks(manager, "last").await else { return false };
    guard.release().await.is_ok()
}

async fn asks(manager: &LockManager, key: &str) -> Option<LockGuard> {
    // Some locks may wait in a queue, so that notifications are read as well.
    let wait = Duration::from_millis(if key.ends_with('7') { 100 } else { 0 });
    match manager.acquire(key, LockOptions::new().wait(wait)).await {
        Ok(guard) => Some(guard),
        // The two expected errors: another client has the lock, or the outcome is unknown.
        Err(Error::Contended { .. } | Error::Store { .. }) => None,
        Err(error) => panic!("{error:?}"),
    }
}
