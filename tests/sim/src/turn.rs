//! One turn of a task: which lock it acquires and how, and what it does under it.
//!
//! Turns are drawn at random, without side effects.

use std::time::Duration;

use lockattr::{LockOptions, Mode};
use lockattr_history as history;
use rand::RngExt;
use rand::rngs::StdRng;

/// The longest lease that any task requests.
pub(crate) const LONGEST_TTL: Duration = Duration::from_millis(1_500);

/// What a task is about to do.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// One key, or two that are acquired together.
    pub(crate) keys: Vec<&'static str>,
    /// How they are shared.
    pub(crate) mode: history::Mode,
    /// The options of the acquisition.
    pub(crate) options: LockOptions,
    /// The wait budget; `None` if the task tries once.
    pub(crate) wait: Option<Duration>,
    /// What it does under the lock.
    pub(crate) steps: Vec<Step>,
    /// How it releases the lock.
    pub(crate) end: End,
    /// How long the lock stays taken once a body has begun, even if the body ends earlier.
    pub(crate) at_least: Duration,
    /// After how long its future is dropped, wherever it is.
    pub(crate) cancelled: Option<Duration>,
}

/// A turn at a given time.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// When it begins.
    pub(crate) at: Duration,
    /// The turn.
    pub(crate) turn: Turn,
    /// Turns that the same task takes concurrently, and drops when its own is done.
    pub(crate) rivals: Vec<Turn>,
}

/// A part of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Works, and checks now and then that the lock is still held.
    Work(Duration),
    /// Counts: reads, works, writes.
    Count(Duration),
    /// Re-enters its hold, and works inside.
    Reenter(Duration),
    /// Extends the lease.
    Extend(Duration),
}

/// How a hold ends if nothing goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is released, and the release awaited.
    Released,
    /// Its guard is dropped.
    Dropped,
    /// It was acquired by `with_lock`, which releases it.
    Scoped,
}

/// Locks for one holder.
const STOCK: [&str; 2] = ["stock:a", "stock:b"];

/// All locks.
pub(crate) const KEYS: [&str; 4] = ["stock:a", "stock:b", "page", "door"];

/// The permits of `door`.
pub(crate) const PERMITS: u32 = 2;

impl Turn {
    /// Draws what a task does next.
    pub(crate) fn draw(dice: &mut StdRng) -> Self {
        let (keys, mode) = match dice.random_range(0..20) {
            0..13 => (vec![STOCK[usize::from(dice.random_bool(0.3))]], history::Mode::Exclusive),
            13..15 => (STOCK.to_vec(), history::Mode::Exclusive),
            15..17 => (vec!["page"], history::Mode::Shared),
            17 => (vec!["page"], history::Mode::Exclusive),
            _ => (vec!["door"], history::Mode::Permits(PERMITS)),
        };
        let ttl = [150, 300, 600, 1_500][dice.random_range(0..4)];
        let mut options = Self::options(mode, Duration::from_millis(ttl));
        let renews = dice.random_bool(0.7);
        if !renews {
            options = options.renew(false);
        } else if dice.random_bool(0.1) {
            options = options.max_hold(Duration::from_millis(ttl * 2));
        }
        let mut at_least = Duration::ZERO;
        if dice.random_bool(0.08) {
            at_least = Duration::from_millis(ttl / 2);
            options = options.hold_at_least(at_least);
        }
        let wait = dice.random_bool(0.85).then(|| dice.random_range(100..2_500));
        let wait = wait.map(Duration::from_millis);
        options = options.wait(wait.unwrap_or_default());
        let end = match dice.random_range(0..10) {
            0..4 => End::Released,
            4..6 => End::Dropped,
            _ if keys.len() == 1 => End::Scoped,
            _ => End::Released,
        };
        let counts = keys[0].starts_with("stock") && dice.random_bool(0.8);
        let steps = (0..dice.random_range(0..=3)).map(|_| Step::draw(dice, counts, ttl)).collect();
        let cancelled = dice.random_bool(0.15).then(|| dice.random_range(1..1_500));
        let cancelled = cancelled.map(Duration::from_millis);
        Self { keys, mode, options, wait, steps, end, at_least, cancelled }
    }

    /// Returns the options for a lock of this mode.
    pub(crate) fn options(mode: history::Mode, ttl: Duration) -> LockOptions {
        let options = LockOptions::new().ttl(ttl);
        match mode {
            history::Mode::Exclusive => options,
            history::Mode::Shared => options.mode(Mode::Shared),
            history::Mode::Permits(permits) => options.permits(permits),
        }
    }
}

impl Step {
    fn draw(dice: &mut StdRng, counts: bool, ttl: u64) -> Self {
        // Some bodies run longer than the lease, most do not.
        let most = if dice.random_bool(0.2) { ttl * 2 } else { 60 };
        let time = Duration::from_millis(dice.random_range(0..most));
        match dice.random_range(0..10) {
            0..6 if counts => Self::Count(time),
            6..8 => Self::Reenter(time),
            8 => Self::Extend(LONGEST_TTL.mul_f64(dice.random_range(0.3..1.0))),
            _ => Self::Work(time),
        }
    }
}
