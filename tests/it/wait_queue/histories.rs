//! Random work of several managers in all modes. The recorded history shows who held what at the
//! same time, and in which order the fencing tokens were issued.

use std::time::Duration;

use lockattr::store::{AnyStore, MemoryStore};
use lockattr::{LockManager, LockOptions, Mode};
use lockattr_history::{Event, Mode as Asked, Op, Recorder, check, monotonic, seed};
use lockattr_tests::{RedisServer, assert_nothing_left};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// More calls than one lease has numbers for.
const CALLS: u32 = 300;

const TASKS: u32 = 6;

/// The random work of one task: permits of one key, reads and writes of another. Some calls give
/// up, some ask only once.
async fn worker(manager: LockManager, recorder: Recorder, chain: u32, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..CALLS {
        let options = match random.random_range(0..8) {
            0 => LockOptions::new().wait(Duration::from_micros(random.random_range(1..2_000))),
            1 => LockOptions::new().retry(0),
            _ => LockOptions::new().wait(Duration::from_secs(60)),
        };
        let (key, asked, options) = match random.random_range(0..8) {
            0..4 => ("page", Asked::Shared, options.mode(Mode::Shared)),
            4 => ("page", Asked::Exclusive, options),
            _ => ("door", Asked::Permits(3), options.permits(3)),
        };
        let call = recorder.invoke(chain, key, Op::Acquire(asked));
        let Ok(guard) = manager.acquire(key, options).await else {
            call.fail();
            continue;
        };
        call.ok(Some(guard.fencing_token().get()));
        for _ in 0..random.random_range(0..3) {
            tokio::task::yield_now().await;
        }
        if random.random_range(0..50) == 0 {
            sleep(Duration::from_millis(2)).await;
        }
        let call = recorder.invoke(chain, key, Op::Release);
        guard.release().await.unwrap();
        call.ok(None);
    }
}

/// The history of all tasks.
async fn history(managers: Vec<LockManager>, seed: u64) -> Vec<Event> {
    let (mut tasks, mut recorders) = (JoinSet::new(), Vec::new());
    for (process, manager) in (0..).zip(managers) {
        let recorder = Recorder::in_memory(process, monotonic);
        for chain in 0..TASKS {
            let seed = seed + u64::from(process * TASKS + chain);
            tasks.spawn(worker(manager.clone(), recorder.clone(), chain, seed));
        }
        recorders.push(recorder);
    }
    tasks.join_all().await;
    recorders.iter().flat_map(Recorder::events).collect()
}

fn judge(events: &[Event], seed: u64) {
    let judged = check(events).unwrap_or_else(|found| panic!("seed {seed}: {found:#?}"));
    assert!(judged.acquired > u64::from(CALLS * TASKS), "{judged:?}");
}

/// Red without: the sequence of numbers of `Together`.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn tokens_grow_and_holds_do_not_overlap_in_memory() {
    let first = seed();
    for (round, limit) in (0..).zip([32, 4, 1_000, 1]) {
        let seed = first + 100 * round;
        let store = AnyStore::new(MemoryStore::new());
        let manager = || {
            let builder = LockManager::builder().store(store.clone()).max_handoffs(limit);
            builder.max_handoff_time(Duration::from_secs(1)).build().unwrap()
        };
        let managers: Vec<_> = (0..3).map(|_| manager()).collect();
        let other = managers[0].clone();
        judge(&history(managers, seed).await, seed);
        for key in ["page", "door"] {
            assert_eq!(other.holder(key).await.unwrap(), None, "{key}");
        }
    }
}

/// Red without: the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn tokens_grow_and_holds_do_not_overlap_over_redis() {
    let server = RedisServer::start().await;
    let seed = seed();
    let mut managers = Vec::new();
    for _ in 0..3 {
        managers.push(LockManager::connect(server.url()).await.unwrap());
    }
    judge(&history(managers, seed).await, seed);
    assert_nothing_left(&server).await;
}
