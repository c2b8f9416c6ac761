//! Whether a second core helps: tasks with a key each in memory, on one worker thread and on two,
//! with one manager for all of them and with two.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::own_cpu::own_cpu;
use crate::report::Report;
use crate::spread::Spread;

const TASKS: usize = 64;

/// Short and in turn, because noise comes and goes.
const ROUND: Duration = Duration::from_millis(200);

/// Worker threads, and managers that share the tasks.
const WAYS: [(usize, usize); 4] = [(1, 1), (2, 1), (1, 2), (2, 2)];

/// A runtime, with its own managers.
struct Way {
    threads: usize,
    managers: Vec<LockManager>,
    runtime: Runtime,
    rounds: Vec<Round>,
}

#[derive(Clone, Copy)]
struct Round {
    /// Acquisitions per second.
    rate: f64,
    /// How many cores this process had. A second core that is busy with other processes cannot
    /// help.
    cores: f64,
}

/// The result of a way with this number of threads and of managers.
type Done = (usize, usize, Vec<Round>);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("cores", "64 tasks with a key each, in memory, on one core and on two");
    // A runtime can neither run nor be dropped inside another.
    let measured = tokio::task::spawn_blocking(move || in_turn(time)).await;
    let all = measured.expect("no panic");
    for (threads, managers, rounds) in &all {
        let what = format!("{threads} threads, {managers} managers");
        let of = |value: fn(&Round) -> f64| Spread::of(rounds.iter().map(value));
        if let (Some(rate), Some(cores)) = (of(|round| round.rate), of(|round| round.cores)) {
            report.figure(&format!("{what}: acquisitions"), rate, "/s");
            report.figure(&format!("{what}: cores that it had"), cores, "");
        }
    }
    for [(_, managers, one), (_, _, two)] in all.as_chunks().0 {
        let what = format!("{managers} managers: two threads over one");
        let ratios = two.iter().zip(one).map(|(two, one)| two.rate / one.rate);
        if let Some(ratio) = Spread::of(ratios) {
            report.figure(&what, ratio, "x");
        }
    }
}

/// Ways with the same managers are neighbours.
fn in_turn(time: Duration) -> Vec<Done> {
    let mut ways = WAYS.map(Way::new);
    for way in &ways {
        way.round();
    }
    let rounds = (time.as_nanos() / ROUND.as_nanos()).max(5);
    for _ in 0..rounds {
        for way in &mut ways {
            let round = way.round();
            way.rounds.push(round);
        }
        // The last comes first next time, so that no way always follows the same one.
        ways.reverse();
    }
    let done = |way: Way| (way.threads, way.managers.len(), way.rounds);
    let mut all: Vec<Done> = ways.into_iter().map(done).collect();
    all.sort_by_key(|&(threads, managers, _)| (managers, threads));
    all
}

impl Way {
    fn new((threads, managers): (usize, usize)) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let connect = || runtime.block_on(LockManager::connect("memory://")).expect("in memory");
        let managers = (0..managers).map(|_| connect()).collect();
        Self { threads, managers, runtime, rounds: Vec::new() }
    }

    fn round(&self) -> Round {
        self.runtime.block_on(async {
            let (began, before) = (Instant::now(), own_cpu());
            let count = Arc::new(AtomicU64::new(0));
            let mut tasks = JoinSet::new();
            for task in 0..TASKS {
                let manager = self.managers[task % self.managers.len()].clone();
                tasks.spawn(take_turns(
                    manager,
                    format!("key:{task}"),
                    began + ROUND,
                    count.clone(),
                ));
            }
            while let Some(ended) = tasks.join_next().await {
                ended.expect("no panic").expect("no other caller uses it");
            }
            let (took, cpu) = (began.elapsed(), own_cpu() - before);
            let rate = count.load(Ordering::Relaxed) as f64 / took.as_secs_f64();
            Round { rate, cores: cpu.div_duration_f64(took) }
        })
    }
}

/// Acquires and releases the lock until `until`, and adds the number of acquisitions to `count`.
async fn take_turns(
    manager: LockManager,
    key: String,
    until: Instant,
    count: Arc<AtomicU64>,
) -> Result<(), Error> {
    let mut taken = 0;
    while Instant::now() < until {
        manager.with_lock(key.as_str(), LockOptions::new(), async |_| {}).await?;
        taken += 1;
        // The memory store never waits, so without this no other task of the thread would run.
        if taken % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
    count.fetch_add(taken, Ordering::Relaxed);
    Ok(())
}
