//! The rates of several ways of locking in one run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::report::Report;
use crate::spread::Spread;

/// A client that acquires and releases locks in one way.
pub(crate) trait Way: Send + Sync + 'static {
    /// Acquires and releases the lock of this key.
    fn hold(&self, key: u64) -> impl Future<Output = ()> + Send;
}

/// Tasks that acquire and release without a pause.
pub(crate) struct Load<'a, W> {
    clients: &'a [Arc<W>],
    tasks: usize,
    keys: usize,
}

impl<'a, W: Way> Load<'a, W> {
    /// One task for each client, all with the same key.
    pub(crate) fn one_key(clients: &'a [Arc<W>]) -> Self {
        Self { clients, tasks: clients.len(), keys: 1 }
    }

    /// A task of each client for each of these keys.
    pub(crate) fn hot_keys(clients: &'a [Arc<W>], keys: usize) -> Self {
        Self { clients, tasks: keys * clients.len(), keys }
    }

    /// A task with a key of its own for each of these keys. The tasks share the clients.
    pub(crate) fn own_keys(clients: &'a [Arc<W>], keys: usize) -> Self {
        Self { clients, tasks: keys, keys }
    }

    /// Returns the rate of all tasks together.
    async fn round(&self, length: Duration) -> f64 {
        let (mut tasks, count) = (JoinSet::new(), Arc::<AtomicU64>::default());
        let began = Instant::now();
        for nth in 0..self.tasks {
            let (key, turn) = (nth % self.keys, nth / self.keys);
            let client = self.clients[(key + turn) % self.clients.len()].clone();
            let (key, count) = (key as u64, count.clone());
            tasks.spawn(async move {
                while began.elapsed() < length {
                    client.hold(key).await;
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        tasks.join_all().await;
        count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
    }
}

/// The rates of one load, one for each round.
pub(crate) struct Rates(Vec<f64>);

impl Rates {
    /// Round by round, because both saw the same noise.
    pub(crate) fn over(&self, other: &Self) -> Spread {
        let ratios = self.0.iter().zip(&other.0).map(|(one, other)| one / other);
        Spread::of(ratios).expect("there was a round")
    }

    pub(crate) fn spread(&self) -> Spread {
        Spread::of(self.0.iter().copied()).expect("there was a round")
    }

    pub(crate) fn note(&self, report: &mut Report, name: &str) {
        report.note(&format!("{name:<44} {:>8.0} a second", self.spread().median));
    }
}

/// All in turn, ABBA…, for `time` each in rounds of about `round`, after a round of each that does
/// not count.
pub(crate) async fn in_turn<W: Way, const N: usize>(
    loads: [Load<'_, W>; N],
    (time, round): (Duration, Duration),
) -> [Rates; N] {
    let mut all = [(); N].map(|()| Rates(Vec::new()));
    for load in &loads {
        load.round(round).await;
    }
    let rounds = (time.as_nanos() / round.as_nanos()).max(3);
    for nth in 0..rounds {
        for turn in 0..N {
            let which = if nth % 2 == 0 { turn } else { N - 1 - turn };
            all[which].0.push(loads[which].round(round).await);
        }
    }
    all
}
