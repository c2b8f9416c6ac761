//! One storm: its tasks, and what failed.

use std::fmt;
use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The locks that the process holds and renews during the storm, and their TTL.
const RENEWED: usize = 20;
const TTL: Duration = Duration::from_secs(2);

/// How long a task waits for a lock that no other task wants. Long: only the store can be late.
const WAIT: Duration = Duration::from_secs(60);

/// How long a task holds its lock, and how long it pauses after a failure.
const HELD: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_millis(50);

/// What came of a storm with this number of tasks.
pub(super) struct Cell {
    pub(super) tasks: usize,
    /// Acquisitions a second.
    pub(super) rate: f64,
    /// Acquires that failed with [`Error::Store`], and with [`Error::Contended`].
    pub(super) store: usize,
    pub(super) contended: usize,
    /// Releases that failed.
    pub(super) releases: usize,
    /// Renewed locks that were lost.
    pub(super) lost: usize,
    /// How long it was until the last task ended.
    took: Duration,
    /// One of the failures.
    example: Option<Error>,
}

impl Cell {
    /// Each task acquires and releases for `time`, and at least once.
    pub(super) async fn measure(url: &str, tasks: usize, time: Duration) -> Self {
        let manager = LockManager::connect(url).await.expect("the servers answer");
        let renewed = renewed(&manager).await;
        let (began, mut running) = (Instant::now(), JoinSet::new());
        for nth in 0..tasks {
            running.spawn(task(manager.clone(), nth, began + time));
        }
        let mut all = Counts::default();
        while let Some(counts) = running.join_next().await {
            all.add(counts.expect("no panic"));
        }
        let took = began.elapsed();
        let lost = renewed.iter().filter(|guard| guard.ensure_held().is_err()).count();
        for guard in renewed {
            // A lock that is lost, which has been counted, cannot be released.
            guard.release().await.ok();
        }
        manager.shutdown().await;
        let Counts { acquired, store, contended, releases, example } = all;
        let rate = acquired as f64 / took.as_secs_f64();
        Self { tasks, rate, store, contended, releases, lost, took, example }
    }
}

async fn renewed(manager: &LockManager) -> Vec<LockGuard> {
    let mut all = Vec::new();
    for nth in 0..RENEWED {
        let options = LockOptions::new().ttl(TTL).wait(WAIT);
        let guard = manager.acquire(format!("renewed:{nth}"), options).await;
        all.push(guard.expect("no storm yet"));
    }
    all
}

#[derive(Default)]
struct Counts {
    acquired: usize,
    store: usize,
    contended: usize,
    releases: usize,
    example: Option<Error>,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.acquired += other.acquired;
        self.store += other.store;
        self.contended += other.contended;
        self.releases += other.releases;
        self.example = self.example.take().or(other.example);
    }
}

async fn task(manager: LockManager, nth: usize, ends: Instant) -> Counts {
    let (key, mut counts) = (format!("own:{nth}"), Counts::default());
    loop {
        match manager.acquire(&key, LockOptions::new().wait(WAIT)).await {
            Ok(guard) => {
                counts.acquired += 1;
                sleep(HELD).await;
                if let Err(error) = guard.release().await {
                    counts.releases += 1;
                    counts.example = Some(error);
                }
            }
            Err(error) => {
                match error {
                    Error::Contended { .. } => counts.contended += 1,
                    _ => counts.store += 1,
                }
                counts.example = Some(error);
                sleep(PAUSE).await;
            }
        }
        if Instant::now() >= ends {
            return counts;
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, contended, releases, lost, took, .. } = self;
        let took = took.as_secs_f64();
        write!(
            f,
            "in {took:.1} s; store {store}, contended {contended}, failed releases {releases}, \
             lost {lost} of {RENEWED}"
        )?;
        match &self.example {
            Some(example) => write!(f, "; such as: {example}"),
            None => Ok(()),
        }
    }
}
