//! A nightly job on five nodes, over simulated nights: each night it ends `Ok` exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinHandle;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);
const NIGHTS: u32 = 100;

/// How a run of the job ended, by night.
#[derive(Default)]
struct Record {
    ok: Vec<AtomicU32>,
    failed: AtomicU32,
    cut_short: AtomicU32,
}

/// A machine, whose clock is ahead or behind, and which may always fail.
struct Node {
    ahead: i64,
    always_fails: bool,
}

impl Node {
    /// When this node starts the job for the `nth` time in a night, on the true clock.
    fn starts(&self, nth: u32) -> Duration {
        // At two, and every ten minutes until three.
        let by_its_clock = 2 * 3600 + i64::from(nth) * 600;
        Duration::from_secs(u64::try_from(by_its_clock - self.ahead).expect("a small difference"))
    }
}

/// The job of a night, once: it works for some minutes, and fails or ends well.
fn job(
    manager: &LockManager,
    works: Duration,
    fails: bool,
    night: u32,
    record: &Arc<Record>,
) -> JoinHandle<()> {
    let (manager, record) = (manager.clone(), record.clone());
    tokio::spawn(async move {
        let body = async |_: &lockattr::Lease| {
            sleep(works).await;
            if fails { Err(Failed) } else { Ok(()) }
        };
        let options = LockOptions::new().wait(Duration::ZERO).max_hold(2 * HOUR);
        match manager.with_lock_once_per("nightly", 22 * HOUR, options, body).await {
            Ok(Ok(())) => drop(record.ok[night as usize].fetch_add(1, Ordering::Relaxed)),
            Ok(Err(Failed)) => drop(record.failed.fetch_add(1, Ordering::Relaxed)),
            Err(Error::Done { .. } | Error::Contended { .. }) => {}
            Err(other) => panic!("night {night}: {other}"),
        }
    })
}

/// The clocks of the five differ by eight minutes, one of them always fails, and in most nights one is restarted
/// while it runs the job.
///
/// Red without: the mark, its period from the acquisition, or the release after a failure.
#[tokio::test(start_paused = true)]
async fn over_a_hundred_nights_a_job_on_five_nodes_ends_ok_exactly_once_each_night() {
    let locks = TestLocks::new();
    let mut random = StdRng::seed_from_u64(21);
    let nodes = [(0, false), (240, false), (-240, false), (90, true), (-30, false)]
        .map(|(ahead, always_fails)| Node { ahead, always_fails });
    let mut managers: Vec<_> = nodes.iter().map(|_| locks.another_process()).collect();
    let ok = (0..NIGHTS).map(|_| AtomicU32::new(0)).collect();
    let record = Arc::new(Record { ok, ..Record::default() });
    let began = Instant::now();
    for night in 0..NIGHTS {
        // All starts of all nodes, in their true order.
        let starts = (0..7).flat_map(|nth| (0..nodes.len()).map(move |node| (nth, node)));
        let mut starts: Vec<_> =
            starts.map(|(nth, node)| (nodes[node].starts(nth), node)).collect();
        starts.sort();
        let (mut jobs, mut restarts) = (Vec::new(), 2);
        for (at, node) in starts {
            tokio::time::sleep_until(began + DAY * night + at).await;
            let works = MINUTE * random.random_range(0..15);
            let fails = nodes[node].always_fails || random.random_bool(0.2);
            jobs.push(job(&managers[node], works, fails, night, &record));
            sleep(Duration::from_secs(20)).await;
            // The process that runs the job ends, and another takes its place.
            if restarts > 0
                && random.random_bool(0.3)
                && locks.holder("nightly").is_some_and(|it| !it.done)
            {
                restarts -= 1;
                let is_cut_short = jobs.iter().rev().find(|job| !job.is_finished());
                is_cut_short.expect("somebody runs the job").abort();
                record.cut_short.fetch_add(1, Ordering::Relaxed);
                managers[node] = locks.another_process();
                locks.until_free("nightly").await;
            }
        }
        for job in jobs {
            assert!(!job.await.is_err_and(|error| error.is_panic()), "night {night}");
        }
    }
    let ok: Vec<_> = record.ok.iter().map(|ok| ok.load(Ordering::Relaxed)).collect();
    assert!(ok.iter().all(|ok| *ok == 1), "{ok:?}");
    // The nights were not quiet ones.
    let (failed, cut_short) =
        (record.failed.load(Ordering::Relaxed), record.cut_short.load(Ordering::Relaxed));
    assert!(failed > 30 && cut_short > 30, "{failed} failed, {cut_short} were cut short");
}
