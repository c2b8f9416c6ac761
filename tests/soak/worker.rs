//! One worker process: `soak worker url=… seed=… process=… directory=… modes=…`.
//!
//! Prints `ready`, and works until a line comes. Only a line `clock MILLISECONDS` does not end the
//! work: it makes the wall clock jump. Then the process finishes its turns, leads and acquires every
//! lock once more, prints `settled`, and ends with its stdin.

mod act;
mod campaign;
mod chain;
mod operations;
mod pulse;
mod term_work;
mod turn;
mod wait_budget;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_history::Recorder;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::calendar;
use crate::chance::stream;
use crate::outcome::{Complaint, Complaints};
use lockattr_tests::{ResourceFile, TermFile};
use pulse::Pulse;
use turn::Turn;

pub(crate) use campaign::{LEADER, TERMS};

/// All locks. The last one has permits, the others are exclusive or shared.
pub(crate) const KEYS: [&str; 6] = ["x0", "x1", "x2", "x3", "x4", "s0"];

/// How many may hold [`SEMAPHORE`] at once.
pub(crate) const PERMITS: u32 = 2;

pub(crate) const SEMAPHORE: usize = 5;

/// The prefix of the order to make the wall clock jump.
pub(crate) const CLOCK: &str = "clock ";

/// The number of tasks that work.
const TASKS: usize = 6;

/// The limit for acquiring any lock when there are no more faults.
const PEACE: Duration = Duration::from_secs(30);

struct World {
    manager: LockManager,
    recorder: Recorder,
    resources: Vec<ResourceFile>,
    complaints: Complaints,
    pulse: Pulse,
    chains: AtomicU32,
    /// The number of this process.
    process: u32,
    /// What the leaders write to.
    terms: TermFile,
    /// Whether the store shows the number of a term to followers.
    shows_terms: bool,
    /// Whether there are no more faults.
    over: watch::Sender<bool>,
}

impl World {
    fn is_over(&self) -> bool {
        *self.over.borrow()
    }
}

/// Runs the process.
///
/// # Errors
///
/// Arguments that make no sense.
pub(crate) async fn run(words: &[String]) -> Result<(), String> {
    let arguments: BTreeMap<&str, &str> =
        words.iter().filter_map(|word| word.split_once('=')).collect();
    let directory: PathBuf = value(&arguments, "directory")?;
    let (process, seed): (u32, u64) = (value(&arguments, "process")?, value(&arguments, "seed")?);
    let all_modes: bool = value(&arguments, "modes")?;
    let url: String = value(&arguments, "url")?;
    let manager = LockManager::builder().url(url).build().map_err(|error| error.to_string())?;
    let recorder = Recorder::to_file(process, directory.join("history.jsonl"));
    let resources = KEYS.iter().map(|key| ResourceFile::at(directory.join(key)));
    let world = Arc::new(World {
        manager,
        recorder: recorder.map_err(|error| error.to_string())?,
        resources: resources.collect(),
        complaints: Complaints::at(&directory, process),
        pulse: Pulse::start(),
        chains: AtomicU32::new(0),
        process,
        terms: TermFile::at(directory.join(TERMS)),
        // The locks of connections have no other modes either.
        shows_terms: all_modes,
        over: watch::Sender::new(false),
    });
    act::be_quiet_about_planned_panics();
    say("ready");
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(works(world.clone(), seed, task, all_modes));
    }
    tasks.spawn(campaign::campaigns(world.clone(), seed));
    let mut orders = BufReader::new(stdin()).lines();
    while let Some(order) = orders.next_line().await.map_err(|error| error.to_string())? {
        match order.strip_prefix(CLOCK).and_then(|millis| millis.parse().ok()) {
            Some(millis) => calendar::jumps(millis),
            None => break,
        }
    }
    world.over.send_replace(true);
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| format!("a task of process {process}: {error}"))?;
    }
    // Without permits there is no semaphore.
    for key in 0..if all_modes { KEYS.len() } else { SEMAPHORE } {
        peace(&world, key).await;
    }
    say("settled");
    orders.next_line().await.map_err(|error| error.to_string())?;
    if timeout(PEACE, world.manager.shutdown()).await.is_err() {
        world.complaints.say(Complaint::Hung("a shutdown does not end".into()));
    }
    Ok(())
}

/// Runs one task's turns. Each turn is drawn before it is taken, so its result does not change the
/// next one.
async fn works(world: Arc<World>, seed: u64, task: usize, all_modes: bool) {
    let mut random = stream(seed, &format!("task {task}"));
    while !world.is_over() {
        let turn = Turn::drawn(&mut random, all_modes);
        act::run_turn(&world, &turn).await;
        sleep(turn.rest).await;
    }
}

/// There are no more faults, so the lock can be acquired.
async fn peace(world: &World, key: usize) {
    let options = LockOptions::new().wait(PEACE);
    let options = if key == SEMAPHORE { options.permits(PERMITS) } else { options };
    // A store that is still recovering from an outage returns an error, and is asked again.
    let mut last = String::new();
    let had = async {
        loop {
            match world.manager.acquire(KEYS[key], options.clone()).await {
                Ok(guard) => return drop(guard.release().await),
                Err(error @ lockattr::Error::Store { .. }) => {
                    last = format!("{error:?}");
                    sleep(Duration::from_millis(100)).await;
                }
                Err(error) => {
                    let text =
                        format!("without faults `{}` cannot be acquired: {error}", KEYS[key]);
                    return world.complaints.say(Complaint::Hung(text));
                }
            }
        }
    };
    if timeout(PEACE + Duration::from_secs(5), had).await.is_err() {
        let text = format!("without faults an acquire of `{}` gets no reply: {last}", KEYS[key]);
        world.complaints.say(Complaint::Hung(text));
    }
}

pub(crate) fn value<T: FromStr>(arguments: &BTreeMap<&str, &str>, name: &str) -> Result<T, String> {
    let value = arguments.get(name).and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("it needs `{name}=…`"))
}

pub(crate) fn say(line: &str) {
    // The driver may be gone, and then this process ends as well.
    writeln!(std::io::stdout(), "{line}").ok();
}
