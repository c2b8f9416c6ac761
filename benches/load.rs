//! The work that is measured: tasks that take a lock, hold it for the body's time, and take it
//! again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::outcome::Outcome;
use crate::peers::Client;

/// Before a round counts: what a round before it has left cold, is warm again.
const RUN_IN: Duration = Duration::from_millis(20);

/// What each process of a row does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) tasks: usize,
    pub(crate) keys: Keys,
    /// How long the lock is held; zero does not even sleep.
    pub(crate) body: Duration,
    /// Whether the order of all acquisitions is wanted.
    pub(crate) ordered: bool,
}

/// Who wants what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// All tasks the same key.
    One,
    /// Each task a key of its own.
    Each,
}

impl Load {
    /// One hot key.
    pub(crate) fn hot(tasks: usize) -> Self {
        Self { tasks, keys: Keys::One, body: Duration::ZERO, ordered: false }
    }

    /// As many keys as tasks.
    pub(crate) fn spread(tasks: usize) -> Self {
        Self { keys: Keys::Each, ..Self::hot(tasks) }
    }

    /// How many keys one process wants.
    pub(crate) fn key_count(self) -> usize {
        if self.keys == Keys::One { 1 } else { self.tasks }
    }

    /// For the command line of a worker; [`from_words`](Self::from_words) reads them.
    pub(crate) fn to_words(self) -> [String; 4] {
        let keys = if self.keys == Keys::One { "one" } else { "each" };
        let order = if self.ordered { "ordered" } else { "any-order" };
        let (tasks, body) = (self.tasks.to_string(), self.body.as_micros().to_string());
        [tasks, keys.to_owned(), body, order.to_owned()]
    }

    pub(crate) fn from_words(words: &[String]) -> Result<Self, String> {
        let [tasks, keys, body, order] = words else {
            return Err(format!("{words:?} is no load"));
        };
        let number = |word: &str| word.parse().map_err(|_| format!("{word:?} is no number"));
        Ok(Self {
            tasks: number(tasks)? as usize,
            keys: if keys == "each" { Keys::Each } else { Keys::One },
            body: Duration::from_micros(number(body)?),
            ordered: order == "ordered",
        })
    }

    /// Does it for `window`, and a little before and after.
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

/// One that wants the lock again and again.
pub(crate) struct Task {
    load: Load,
    from: Instant,
    until: Instant,
    number: usize,
    /// Who of this process had the lock last.
    last: Arc<AtomicUsize>,
    asked: Instant,
    noted: Noted,
}

/// What a task notes of its acquisitions.
#[derive(Default)]
struct Noted {
    counted: u64,
    all: u64,
    hand_offs: u64,
    bodies: Duration,
    order: Vec<u64>,
    /// In nanoseconds. A histogram for each task would compute more, as it grows, than a lock does.
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

    /// Adds what it has to tell, once no process is measured any more.
    fn tell(self, total: &mut Outcome) {
        let Noted { counted, all, hand_offs, bodies, mut order, waits } = self.noted;
        total.counted.push(counted);
        total.all += all;
        total.hand_offs += hand_offs;
        total.bodies += bodies;
        total.order.append(&mut order);
        waits.iter().for_each(|&nanos| total.record_wait(nanos, 1));
    }

    /// How many acquisitions it has behind it, and its own number: who does something every few
    /// acquisitions does not do it at the same time as all other tasks.
    pub(crate) fn nth(&self) -> u64 {
        self.noted.all + self.number as u64
    }

    /// The body: what happens while the lock is held. `number` is the fencing token, from who has
    /// one.
    pub(crate) async fn inside(&mut self, number: Option<u64>) {
        let held = Instant::now();
        self.noted.all += 1;
        // No other process is here, as long as all want the same key.
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

/// Nanoseconds of the clock that all processes share, for the process that has no fencing tokens: as only
/// one holds the lock at a time, the order of these is the order of the acquisitions.
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every system has this clock");
    Duration::from(time).as_nanos() as u64
}
