//! A server that answers anything: no process gets a lock, a renewal or a release by other words than those
//! that mean it, nothing panics, and once it is honest again all goes on.
//!
//! `LOCKATTR_HOSTILE_SEED` has it say the same again; `LOCKATTR_HOSTILE_ROUNDS` more of it. What is said
//! to one key depends on the seed and the key alone, not on what else is under way.

mod answers;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions};
use tokio::runtime::Builder;
use tokio::time::Instant;

use server::Hostile;

/// So many locks are asked for. Two of five are granted, and one of the others gets by mistake what a
/// reader that is too kind takes for a grant.
const ROUNDS: u64 = 300;

/// Short, because many an answer never comes.
const URL: &str = "connections=2&connect_timeout=250ms&response_timeout=60ms&heartbeat=50ms";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What it relies on is `FencingToken::read` and `request::held`, which have tests of their own.
#[test]
#[allow(clippy::print_stdout, reason = "the seed is for whoever reads what failed")]
fn no_process_is_believed_to_hold_but_by_the_very_words() {
    let seed = number("LOCKATTR_HOSTILE_SEED").unwrap_or_else(rand::random);
    println!("LOCKATTR_HOSTILE_SEED={seed}");
    // On threads of its own, so that a panic in any task can be told from those of other tests.
    let panics = panics_on(THREADS);
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_name(THREADS).enable_all().build().unwrap();
    let asking = runtime.spawn(is_asked(seed));
    runtime.block_on(asking).unwrap();
    assert_eq!(panics.load(Ordering::SeqCst), 0, "seed {seed}: a task has panicked");
}

const THREADS: &str = "hostile";

/// How many panics there are from now on, on threads of this name.
fn panics_on(name: &'static str) -> Arc<AtomicUsize> {
    let panics = Arc::<AtomicUsize>::default();
    let (counted, before) = (panics.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() == Some(name) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        before(info);
    }));
    panics
}

async fn is_asked(seed: u64) {
    let server = Hostile::start(seed).await;
    let url = format!("redis://{}/?{URL}", server.addr());
    let manager = LockManager::builder().url(&url).build().unwrap();
    let (mut granted, mut extended, mut released) = (0, 0, 0);
    for round in 0..number("LOCKATTR_HOSTILE_ROUNDS").unwrap_or(ROUNDS) {
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
    // Else it has shown nothing.
    assert!(granted > 20 && extended > 2 && released > 2, "{granted} {extended} {released}");

    server.is_honest_now();
    let until = Instant::now() + Duration::from_secs(20);
    while !works(&manager).await {
        assert!(Instant::now() < until, "seed {seed}: the manager works no more");
    }
}

async fn works(manager: &LockManager) -> bool {
    let Some(guard) = asks(manager, "last").await else { return false };
    guard.release().await.is_ok()
}

async fn asks(manager: &LockManager, key: &str) -> Option<LockGuard> {
    // A lock for which it may wait in the queue now and then, so that messages are read as well.
    let wait = Duration::from_millis(if key.ends_with('7') { 100 } else { 0 });
    match manager.acquire(key, LockOptions::new().wait(wait)).await {
        Ok(guard) => Some(guard),
        // The two that are meant for this: another has it, or it is unknown.
        Err(Error::Contended { .. } | Error::Store { .. }) => None,
        Err(error) => panic!("{error:?}"),
    }
}
