//! Records a history, in memory or in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::time::{ClockId, clock_gettime};

use crate::{Event, Op, Step};

/// Records the events of one process. Clones write to the same history.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    process: u32,
    clock: fn() -> u64,
    calls: AtomicU64,
    events: Mutex<Events>,
}

#[derive(Debug)]
enum Events {
    Memory(Vec<Event>),
    /// Each event is written at once, so a killed process leaves all its events.
    File(File),
}

/// A call that has begun. If it is dropped without an outcome, its outcome is unknown.
#[derive(Debug)]
#[must_use]
pub struct Call {
    recorder: Recorder,
    chain: u32,
    call: u64,
    key: String,
}

/// Returns the nanoseconds of the machine's monotonic clock, the same for all its processes.
///
/// # Panics
///
/// If the system has no such clock.
pub fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a monotonic clock");
    let (seconds, nanoseconds) = (now.tv_sec().unsigned_abs(), now.tv_nsec().unsigned_abs());
    seconds * 1_000_000_000 + nanoseconds
}

impl Recorder {
    /// Creates a recorder that keeps the history in memory, with the test's own clock.
    pub fn in_memory(process: u32, clock: fn() -> u64) -> Self {
        Self::new(process, clock, Events::Memory(Vec::new()))
    }

    /// Creates a recorder that appends to a file, with the machine's clock. Other processes may
    /// append to the same file.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    pub fn to_file(process: u32, path: impl AsRef<Path>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self::new(process, monotonic, Events::File(file)))
    }

    fn new(process: u32, clock: fn() -> u64, events: Events) -> Self {
        let (calls, events) = (AtomicU64::new(0), Mutex::new(events));
        Self(Arc::new(Inner { process, clock, calls, events }))
    }

    /// Records that a call begins. Call this before the operation starts.
    pub fn invoke(&self, chain: u32, key: &str, op: Op) -> Call {
        let call = self.0.calls.fetch_add(1, Ordering::Relaxed);
        let call = Call { recorder: self.clone(), chain, call, key: key.to_owned() };
        call.write(Step::Invoke(op));
        call
    }

    /// Records that the chain was notified of the loss of its lock.
    pub fn lost(&self, chain: u32, key: &str) {
        let call = self.0.calls.fetch_add(1, Ordering::Relaxed);
        Call { recorder: self.clone(), chain, call, key: key.to_owned() }.write(Step::Lost);
    }

    /// Returns the events kept in memory so far.
    ///
    /// # Panics
    ///
    /// If the history is in a file. Use [`read`](crate::read) for that.
    pub fn events(&self) -> Vec<Event> {
        match &*self.0.events.lock().unwrap_or_else(PoisonError::into_inner) {
            Events::Memory(events) => events.clone(),
            Events::File(_) => panic!("the history is in a file: use `read`"),
        }
    }
}

impl Call {
    /// Records success, with the fencing token if the call has one. Call this at once.
    pub fn ok(self, fence: Option<u64>) {
        self.write(Step::Ok(fence));
    }

    /// Records that the call had no effect, and never will.
    pub fn fail(self) {
        self.write(Step::Fail);
    }

    /// Records that the outcome is unknown.
    pub fn unknown(self) {
        self.write(Step::Unknown);
    }

    fn write(&self, step: Step) {
        let Inner { process, clock, events, .. } = &*self.recorder.0;
        let (process, chain, call, key) = (*process, self.chain, self.call, self.key.clone());
        let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Event { at: clock(), process, chain, call, key, step };
        match &mut *events {
            Events::Memory(events) => events.push(event),
            Events::File(file) => {
                let mut line = serde_json::to_vec(&event).expect("an event is plain data");
                line.push(b'\n');
                // One write: in append mode, lines of several processes do not mix.
                file.write_all(&line).expect("the history can be written");
            }
        }
    }
}
