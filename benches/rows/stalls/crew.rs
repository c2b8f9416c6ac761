//! Eight managers with a few tasks each, and their rates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const MANAGERS: usize = 8;

/// The tasks of a manager, each with its own key.
const TASKS: usize = 4;

/// How long [`Crew::recover`] waits.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// The time that one rate after a stall comes from.
const WINDOW: Duration = Duration::from_millis(200);

/// How long a task pauses after a failure.
const PAUSE: Duration = Duration::from_millis(20);

/// The tasks end when this value is dropped.
pub(super) struct Crew {
    acquired: Vec<Arc<AtomicU64>>,
    failed: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
    _kept: LockGuard,
}

impl Crew {
    /// The manager at `keeper` holds one lock, for which a task of each other manager waits, so
    /// that each manager listens.
    pub(super) async fn start(url: &str, keeper: &str) -> Self {
        let connect = async |url: &str| LockManager::connect(url).await.expect("it is there");
        let kept = connect(keeper).await.acquire("kept", LockOptions::new()).await;
        let (mut acquired, failed) = (Vec::new(), Arc::<AtomicU64>::default());
        let mut tasks = JoinSet::new();
        for nth in 0..MANAGERS {
            let (manager, count) = (connect(url).await, Arc::<AtomicU64>::default());
            tasks.spawn(wait(manager.clone()));
            for task in 0..TASKS {
                let (manager, key) = (manager.clone(), format!("own:{nth}:{task}"));
                tasks.spawn(work(manager, key, count.clone(), failed.clone()));
            }
            acquired.push(count);
        }
        Self { acquired, failed, _tasks: tasks, _kept: kept.expect("free") }
    }

    /// Returns the acquisitions a second of each manager, from the next `time`.
    pub(super) async fn rates(&self, time: Duration) -> Vec<f64> {
        let (began, before) = (Instant::now(), self.counts());
        sleep(time).await;
        let seconds = began.elapsed().as_secs_f64();
        let pairs = self.counts().into_iter().zip(before);
        pairs.map(|(now, before)| (now - before) as f64 / seconds).collect()
    }

    /// Returns how long it takes until each manager has half of its `usual` rate; `None` for
    /// longer than [`LIMIT`].
    pub(super) async fn recover(&self, usual: &[f64]) -> Vec<Option<Duration>> {
        let (began, mut times) = (Instant::now(), vec![None; usual.len()]);
        while times.contains(&None) && began.elapsed() < LIMIT {
            let rates = self.rates(WINDOW).await;
            for (time, (rate, usual)) in times.iter_mut().zip(rates.iter().zip(usual)) {
                if time.is_none() && *rate >= usual / 2.0 {
                    *time = Some(began.elapsed());
                }
            }
        }
        times
    }

    pub(super) fn failures(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn counts(&self) -> Vec<u64> {
        self.acquired.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

async fn wait(manager: LockManager) {
    let options = LockOptions::new().wait(Duration::from_secs(3600));
    loop {
        // Fails if its own session stalls.
        manager.acquire("kept", options.clone()).await.ok();
        sleep(PAUSE).await;
    }
}

async fn work(manager: LockManager, key: String, count: Arc<AtomicU64>, failed: Arc<AtomicU64>) {
    loop {
        let held = match manager.acquire(&key, LockOptions::new()).await {
            Ok(guard) => {
                count.fetch_add(1, Ordering::Relaxed);
                guard.release().await
            }
            Err(error) => Err(error),
        };
        if held.is_err() {
            failed.fetch_add(1, Ordering::Relaxed);
            sleep(PAUSE).await;
        }
    }
}
