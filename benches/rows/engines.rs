//! All engines: acquire and release of an uncontended lock, and hand-off between two processes.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, bare, engines};
use tokio::time::{Instant, sleep};

use crate::report::{Line, Plot, Report};

/// Short and in turn, because noise comes and goes.
const ROUND: Duration = Duration::from_millis(200);

/// The number of keys used in turn, so that no key is used twice in a row.
const KEYS: u64 = 64;

/// How long a holder holds, so that the next one is certainly queued.
const HELD: Duration = Duration::from_millis(5);

/// Longer than any lease.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// The points of the plot: one acquisition of this many takes longer.
const ONE_OF: [f64; 8] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// One engine with two managers, which the store sees as two processes.
struct Contender {
    name: &'static str,
    managers: [LockManager; 2],
    alone: Histogram<u64>,
    handed: Histogram<u64>,
    /// Stops when it is dropped.
    _server: Box<dyn Any>,
}

impl Contender {
    async fn on<E: Engine>(name: &'static str) -> Self {
        let server = E::start().await;
        let url = bare(&server.url());
        let connect = async || LockManager::connect(&url).await.expect("the servers answer");
        let managers = [connect().await, connect().await];
        let none = || Histogram::new(3).expect("three digits");
        Self { name, managers, alone: none(), handed: none(), _server: Box::new(server) }
    }

    async fn round(&mut self) {
        self.alone.add(alone(&self.managers[0]).await).expect("alike");
        self.handed.add(handed(&self.managers).await).expect("alike");
    }
}

/// Acquires and releases in its own task, as a service handles a request.
async fn alone(manager: &LockManager) -> Histogram<u64> {
    let manager = manager.clone();
    let work = async move {
        let mut taken = Histogram::new(3).expect("three digits");
        let ends = Instant::now() + ROUND;
        for turn in 0.. {
            let began = Instant::now();
            if began > ends {
                break;
            }
            let key = format!("alone:{}", turn % KEYS);
            let options = LockOptions::new().wait(WAIT_LIMIT);
            let guard = manager.acquire(&key, options).await.expect("free");
            guard.release().await.ok();
            taken.record(nanos(began.elapsed())).expect("it resizes");
        }
        taken
    };
    tokio::spawn(work).await.expect("no panic")
}

/// Two processes that take turns: the time from one's release until the other holds the lock.
async fn handed(managers: &[LockManager; 2]) -> Histogram<u64> {
    let (ends, let_go) = (Instant::now() + ROUND, Arc::new(Mutex::new(None::<Instant>)));
    let both = managers.clone().map(|manager| {
        let let_go = let_go.clone();
        tokio::spawn(async move {
            let mut taken = Histogram::new(3).expect("three digits");
            while Instant::now() < ends {
                let options = LockOptions::new().wait(WAIT_LIMIT);
                let guard = manager.acquire("handed", options).await.expect("granted");
                let since = let_go.lock().expect("no panic").take();
                if let Some(since) = since {
                    taken.record(nanos(since.elapsed())).expect("it resizes");
                }
                sleep(HELD).await;
                *let_go.lock().expect("no panic") = Some(Instant::now());
                // A release without an answer is retried in the background, and the next holder
                // waits for it.
                guard.release().await.ok();
            }
            taken
        })
    });
    let mut all = Histogram::new(3).expect("three digits");
    for one in both {
        all.add(one.await.expect("no panic")).expect("alike");
    }
    all
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

macro_rules! contenders {
    ($($name:ident: $engine:ty),* $(,)?) => {
        vec![$(Contender::on::<$engine>(stringify!($name)).await),*]
    };
}

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("engines", "every engine, alone and from hand to hand, in turn");
    let mut all: Vec<Contender> = engines!(contenders);
    let rounds = (time.as_nanos() / ROUND.as_nanos()).max(3);
    for contender in &mut all {
        // Connections and compilation at the start are not measured.
        contender.round().await;
        contender.alone.reset();
        contender.handed.reset();
    }
    for _ in 0..rounds {
        // The last comes first next time, so that no engine always follows the same one.
        all.reverse();
        for contender in &mut all {
            contender.round().await;
        }
    }
    all.sort_by_key(|contender| contender.name);
    for Contender { name, alone, handed, .. } in &all {
        report.latency(name, "acquire + release", alone);
        report.latency(name, "hand-over", handed);
    }
    plot(report, &all, "engines-alone.svg", "Acquire and release, nobody else", |one| &one.alone);
    plot(report, &all, "engines-handed.svg", "From hand to hand, two processes", |one| &one.handed);
}

fn plot(
    report: &mut Report,
    all: &[Contender],
    file: &str,
    title: &str,
    which: fn(&Contender) -> &Histogram<u64>,
) {
    let lines = all.iter().enumerate().map(|(nth, one)| {
        let taken = which(one);
        // Points beyond the number of measurements would all be the same.
        let known = ONE_OF.iter().filter(|&&of| of <= taken.len() as f64);
        let micros = |of: f64| taken.value_at_quantile(1.0 - 1.0 / of) as f64 / 1e3;
        Line::named(one.name, nth, known.map(|&of| (of, micros(of))).collect())
    });
    let lines = lines.collect();
    report.plot(&Plot { file, title, x: "one of so many takes longer", y: "microseconds", lines });
}
