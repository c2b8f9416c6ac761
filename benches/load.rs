//! The work that is measured: tasks that acquire a lock, hold it for the body's time, and acquire
//! it again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::outcome::Outcome;
use crate::peers::Client;

/// The time before a round counts, which warms up what has become cold since the last round.
const RUN_IN: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) tasks: usize,
    pub(crate) keys: Keys,
    /// How long the lock is held; zero does not even sleep.
    pub(crate) body: Duration,
    /// Whether to record the order of all acquisitions.
    pub(crate) ordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    One,
    Each,
}

impl Load {
    pub(crate) fn hot(tasks: usize) -> Self {
        Self { tasks, keys: Keys::One, body: Duration::ZERO, ordered: false }
    }

    pub(crate) fn spread(tasks: usize) -> Self {
        Self { keys: Keys::Each, ..Self::hot(tasks) }
    }

    pub(crate) fn key_count(self) -> usize {
        if self.keys == Keys::One { 1 } else { self.tasks }
    }

    /// The arguments of a worker, which [`from_words`](Self::from_words) parses.
    pub(crate) fn to_words(self) -> [String; 4] {
        let keys = if self.keys == Keys::One { "one" } else { "each" };
        let order = if self.ordered { "ordered" } else { "any-order" };
        let (tasks, body) = (self.tasks.to_string(), self.body.as_micros().to_string());
        [tasks, keys.to_owned(), body, order.to_owned()]
    }

    pub(crate) fn from_words(words: &[String]) -> Result<Self, String> {
        let [tasks, keys, body, order] = words else {
            return Err(format!("{words:?} is not a load"));
        };
        let number = |word: &str| word.parse().map_err(|_| format!("{word:?} is not a number"));
        Ok(Self {
            tasks: number(tasks)? as usize,
            keys: if keys == "each" { Keys::Each } else { Keys::One },
            body: Duration::from_micros(number(body)?),
            ordered: order == "ordered",
        })
    }

    /// Runs the tasks for `window`, and a little before and after.
    pub(crate) async fn run(
        self,
        client: &Arc<Client>,
        key: &str,
        window: Duration,
    ) -> Result<Outcome, String> {
        let from = Instant::now() + RUN_IN;
        let until = from + window;
        let last = Arc::new(AtomicUsize::new(usize::MAX));
        let mut tasks = JoinSet::new();
        for n in 0..self.tasks {
            let key = match self.keys {
                Keys::One => key.to_owned(),
                Keys::Each => format!("{key}:{n}"),
            };
            let task = Task::new(self, (from, until), n, Arc::clone(&last));
            tasks.spawn(task.run(Arc::clone(client), key));
        }
        let mut ended = Vec::new();
        while let Some(task) = tasks.join_next().await {
            ended.push(task.map_err(|error| error.to_string())??);
        }
        let mut total = Outcome::new(window);
        for task in ended {
            task.tell(&mut total);
        }
        Ok(total)
    }
}

pub(crate) struct Task {
    load: Load,
    from: Instant,
    until: Instant,
    number: usize,
    /// The task of this process that last held the lock.
    last: Arc<AtomicUsize>,
    asked: Instant,
    noted: Noted,
}

#[derive(Default)]
struct Noted {
    counted: u64,
    all: u64,
    hand_offs: u64,
    bodies: Duration,
    order: Vec<u64>,
    /// In nanoseconds. A growing histogram for each task would cost more than the lock.
    waits: Vec<u64>,
}

impl Task {
    fn new(
        load: Load,
        (from, until): (Instant, Instant),
        number: usize,
        last: Arc<AtomicUsize>,
    ) -> Self {
        let (asked, noted) = (Instant::now(), Noted::default());
        Self { load, from, until, number, last, asked, noted }
    }

    async fn run(mut self, client: Arc<Client>, key: String) -> Result<Self, String> {
        loop {
            self.asked = Instant::now();
            if self.asked >= self.until {
                return Ok(self);
            }
            client.hold(&key, &mut self).await?;
        }
    }

    /// Adds its results, after the measurement.
    fn tell(self, total: &mut Outcome) {
        let Noted { counted, all, hand_offs, bodies, mut order, waits } = self.noted;
        total.counted.push(counted);
        total.all += all;
        total.hand_offs += hand_offs;
        total.bodies += bodies;
        total.order.append(&mut order);
        waits.iter().for_each(|&nanos| total.record_wait(nanos, 1));
    }

    /// The number of its acquisitions so far, plus its own number, so that tasks that do something
    /// every few acquisitions do not all do it at once.
    pub(crate) fn nth(&self) -> u64 {
        self.noted.all + self.number as u64
    }

    /// The body under the lock. `number` is the fencing token, if the peer has one.
    pub(crate) async fn inside(&mut self, number: Option<u64>) {
        let held = Instant::now();
        self.noted.all += 1;
        // No other task is here, if all use the same key.
        if self.last.swap(self.number, Ordering::Relaxed) != self.number {
            self.noted.hand_offs += 1;
        }
        if self.asked >= self.from {
            let waited = held - self.asked;
            self.noted.waits.push(waited.as_nanos() as u64);
        }
        if self.load.ordered {
            self.noted.order.push(number.unwrap_or_else(monotonic));
        }
        if !self.load.body.is_zero() {
            sleep(self.load.body).await;
        }
        if (self.from..self.until).contains(&held) {
            self.noted.counted += 1;
            self.noted.bodies += held.elapsed();
        }
    }
}

/// Nanoseconds of the clock that all processes share, for peers without fencing tokens. Only one
/// process holds the lock at a time, so their order is the order of the acquisitions.
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every system has this clock");
    Duration::from(time).as_nanos() as u64
}
