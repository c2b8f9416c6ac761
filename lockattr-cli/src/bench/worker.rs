//! The tasks of a bench: each acquires and releases keys until it is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use lockattr::{Error, LockManager, LockOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The result of one task.
pub(super) struct TaskResult {
    /// How long each acquire took, in microseconds.
    pub(super) waits: Histogram<u64>,
    /// How often another task was the previous holder of the key.
    pub(super) hand_offs: u64,
}

/// What the tasks share.
pub(super) struct Bench {
    manager: LockManager,
    keys: Arc<[Key]>,
    state: watch::Sender<State>,
}

struct Key {
    name: String,
    /// The task that had the key last, counted from 1.
    last: AtomicU32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Failed,
    Stopped,
}

/// A contended key has a long wait queue.
const OPTIONS: LockOptions = LockOptions::new().wait(Duration::from_secs(600)).function("bench");

impl Bench {
    pub(super) fn new(manager: &LockManager, keys: u32) -> Self {
        let run: u64 = rand::random();
        let named = |number| Key {
            name: format!("lockattr-bench:{run:016x}:{number}"),
            last: AtomicU32::new(0),
        };
        let keys = (0..keys).map(named).collect();
        Self { manager: manager.clone(), keys, state: watch::Sender::new(State::Running) }
    }

    pub(super) fn start(&self, task: u32) -> JoinHandle<Result<TaskResult, Error>> {
        let (manager, keys, state) = (self.manager.clone(), self.keys.clone(), self.state.clone());
        tokio::spawn(async move {
            let done = work(&manager, &keys, task, &state).await;
            if done.is_err() {
                state.send_if_modified(|state| replace(state, State::Running, State::Failed));
            }
            done
        })
    }

    pub(super) async fn failed(&self) {
        // The sender exists, so the wait ends only with a failure.
        self.state.subscribe().wait_for(|state| *state == State::Failed).await.ok();
    }

    pub(super) fn stop(&self) {
        self.state.send_replace(State::Stopped);
    }
}

fn replace(state: &mut State, old: State, new: State) -> bool {
    let is_old = *state == old;
    if is_old {
        *state = new;
    }
    is_old
}

async fn work(
    manager: &LockManager,
    keys: &[Key],
    task: u32,
    state: &watch::Sender<State>,
) -> Result<TaskResult, Error> {
    let mut stopped = state.subscribe();
    let mut result = TaskResult { waits: histogram(), hand_offs: 0 };
    // Each task starts at another key and cycles through all of them.
    let turns = keys.iter().cycle().skip(task as usize % keys.len());
    for key in turns {
        let began = Instant::now();
        let guard = tokio::select! {
            biased;
            _ = stopped.wait_for(|state| *state != State::Running) => return Ok(result),
            guard = manager.acquire(&key.name, OPTIONS) => guard?,
        };
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        result.waits.saturating_record(took.max(1));
        let last = key.last.swap(task + 1, Ordering::Relaxed);
        result.hand_offs += u64::from(last != 0 && last != task + 1);
        guard.release().await?;
    }
    Ok(result)
}

/// From a microsecond to an hour, to three digits.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("bounds that the histogram takes")
}
