//! A server whose replies are changed on their way: another type, another length, another byte.
//!
//! Whatever comes, no task panics, each call ends, and once the replies are whole again the same
//! manager locks. `LOCKATTR_SEED` repeats a run's changes as far as the servers' timing allows.

mod change;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_history::seed;
use lockattr_tests::{Engine, Wires, eventually, in_time};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Builder;

use crate::support::{panics_on, works};
use change::Change;

/// So many replies are changed.
const MUTATED: usize = 40;

/// Many replies never come, or come as the beginning of a longer one.
const QUICK: &str = "connect_timeout=400ms&response_timeout=400ms&wait=1s";

macro_rules! mutated {
    ($($name:ident: $engine:ident, $protocol:literal, $settings:literal;)*) => {
        $(mod $name {
            #[test]
            fn a_reply_that_is_no_answer_is_an_error_and_never_a_panic() {
                super::never_panics::<lockattr_tests::$engine>($protocol, $settings);
            }
        })*
    };
}

mutated! {
    redis: RedisServer, "redis", "";
    redis_without_resp3: RedisServer, "resp2", "";
    postgres: PostgresServer, "postgres", "";
    postgres_sessions: PostgresServer, "postgres", "&lock=session";
    mysql: MariaDb, "mysql", "";
    mysql_sessions: MariaDb, "mysql", "&lock=session";
    zookeeper: ZooKeeper, "zookeeper", "";
    etcd: Etcd, "etcd", "";
}

/// Red without: any getter of `mysql/reply.rs` that fails in place of panicking, `try_get` in
/// `pooler.rs` and `session.rs`; on some seeds `catch_unwind` and `note_unanswered` in `zookeeper/session.rs`.
fn never_panics<E: Engine>(engine: &'static str, settings: &str) {
    let seed = seed();
    // On named threads, so that a panic in any task can be told from those of other tests. A thread
    // has at most 15 characters in its name.
    let threads: &'static str = format!("{engine:.8}{}", settings.len()).leak();
    // And on the threads of stores.
    let panics = [panics_on(threads), panics_on("lockattr-")];
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_name(threads).enable_all().build().unwrap();
    // The server is its own: a changed reply may make us end the session of another client.
    runtime.block_on(async { lock_over(&E::start().await, settings, engine, seed).await });
    let panics = panics.map(|panics| panics.load(Ordering::SeqCst));
    assert_eq!(panics, [0; 2], "seed {seed}: a task has panicked");
}

/// Locks over replies of which some are changed, until enough of them were.
async fn lock_over<E: Engine>(server: &E, settings: &str, engine: &'static str, seed: u64) {
    let (wires, change) = (Wires::before(server).await, Change::of(engine));
    let url = wires.url_with(&format!("{QUICK}&{}{settings}", E::SHORT));
    let mutated = Arc::<AtomicUsize>::default();
    for round in 0_u64.. {
        if mutated.load(Ordering::SeqCst) >= MUTATED {
            break;
        }
        for (wire, nth) in wires.each().iter().zip(0..) {
            // Not by what was changed so far: a round that changes nothing would be repeated without end.
            let (mutated, mut random) =
                (mutated.clone(), StdRng::seed_from_u64(seed ^ (round << 8) ^ nth));
            wire.mutate(move |bytes| {
                change.translate(bytes);
                if !bytes.is_empty() && random.random_ratio(1, change.one_in) {
                    change.apply(bytes, &mut random);
                    mutated.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let manager = LockManager::builder().url(&url).build().unwrap();
        in_time(use_it(&manager, server)).await;
        wires.pass().await;
        in_time(async { while !works(&manager).await {} }).await;
    }
    let nothing_is_left = async || {
        // Who connects to a database deletes what has ended, if that is due.
        drop(LockManager::connect(server.url()).await);
        server.left().await.is_empty()
    };
    eventually("nothing is left", nothing_is_left).await;
}

/// A lock that another process holds at first, and what an operator asks. Any of it may fail.
async fn use_it<E: Engine>(manager: &LockManager, server: &E) {
    let other = LockManager::connect(server.url()).await.unwrap();
    let Ok(held) = other.acquire("a", LockOptions::new()).await else { return };
    let (guard, ()) = tokio::join!(manager.acquire("a", LockOptions::new()), async {
        drop(manager.held_locks().await);
        drop(held.release().await);
    });
    if let Ok(guard) = guard {
        drop(guard.extend(Duration::from_secs(1)).await);
        drop(guard.release().await);
    }
}
