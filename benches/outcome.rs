//! The result of one round in one process, and how it travels through a pipe.

use std::fmt::{self, Write};
use std::time::Duration;

use hdrhistogram::Histogram;

/// The result of a process after a round.
///
/// Only acquisitions within the window count for the speed. `all` includes those before the window
/// and those still waiting at its end, because the server has counted their commands too.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) window: Duration,
    pub(crate) counted: Vec<u64>,
    pub(crate) all: u64,
    /// Those of all that followed another task's acquisition; meaningless if each task has its own
    /// key.
    pub(crate) hand_offs: u64,
    /// Nanoseconds from request to acquisition, for all requests within the window.
    pub(crate) waits: Histogram<u64>,
    /// The bodies within the window; one that sleeps for 1 ms takes longer.
    pub(crate) bodies: Duration,
    /// Numbers that order the acquisitions of all processes.
    pub(crate) order: Vec<u64>,
}

impl Outcome {
    pub(crate) fn new(window: Duration) -> Self {
        Self {
            window,
            counted: Vec::new(),
            all: 0,
            hand_offs: 0,
            waits: new_histogram(),
            bodies: Duration::ZERO,
            order: Vec::new(),
        }
    }

    pub(crate) fn record_wait(&mut self, nanos: u64, count: u64) {
        self.waits.record_n(nanos, count).expect("a histogram that grows");
    }

    /// Adds the result of another task, process or round, except its `order`.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counted.extend(&other.counted);
        self.all += other.all;
        self.hand_offs += other.hand_offs;
        self.waits.add(&other.waits).expect("a histogram that grows");
        self.bodies += other.bodies;
    }

    /// Parses one of the lines that `Display` prints; `false` at the last.
    pub(crate) fn read(&mut self, line: &str) -> Result<bool, String> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbers: Result<Vec<u64>, _> = rest.split_whitespace().map(str::parse).collect();
        let numbers = numbers.map_err(|error| format!("{line:?}: {error}"))?;
        match (name, numbers.as_slice()) {
            ("done", []) => return Ok(false),
            ("tasks", counted) => self.counted.extend(counted),
            ("all", &[all]) => self.all += all,
            ("hand-offs", &[hand_offs]) => self.hand_offs += hand_offs,
            ("wait", &[nanos, count]) => self.record_wait(nanos, count),
            ("bodies", &[nanos]) => self.bodies += Duration::from_nanos(nanos),
            ("order", order) => self.order.extend(order),
            _ => return Err(format!("it printed {line:?}")),
        }
        Ok(true)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tasks{}", joined(&self.counted))?;
        writeln!(f, "all {}", self.all)?;
        writeln!(f, "hand-offs {}", self.hand_offs)?;
        writeln!(f, "bodies {}", self.bodies.as_nanos())?;
        for step in self.waits.iter_recorded() {
            writeln!(f, "wait {} {}", step.value_iterated_to(), step.count_at_value())?;
        }
        for some in self.order.chunks(1_000) {
            writeln!(f, "order{}", joined(some))?;
        }
        writeln!(f, "done")
    }
}

/// Three significant digits for every value.
fn new_histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are allowed")
}

fn joined(numbers: &[u64]) -> String {
    numbers.iter().fold(String::new(), |mut text, number| {
        write!(text, " {number}").expect("writing to a String cannot fail");
        text
    })
}
