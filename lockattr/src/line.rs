//! Those of this process who wait for the same lock: one of them asks the store, the others stand
//! behind, and who has the lock hands it to the next without asking anybody (lock cohorting: Dice,
//! Marathe, Shavit, `PPoPP` 2012). No I/O, and no clock of its own.
//!
//! `W` is what a waiter wants, `T` what it is handed: neither is looked at here.

// Named, because the models take this file from another place.
#[path = "line/ahead.rs"]
mod ahead;
#[path = "line/handed.rs"]
mod handed;
#[path = "line/place.rs"]
mod place;

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::time::Duration;

use crate::sync::{Arc, Instant, Mutex, MutexGuard, PoisonError, oneshot};
pub(crate) use ahead::{Ahead, Next};
use handed::Handed;
pub(crate) use handed::{Lying, PICKED_UP_WITHIN};
use place::Waiter;
pub(crate) use place::{Came, Place};

/// How far a lock goes from hand to hand inside a process while another process waits for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// At most so often.
    pub(crate) count: u32,
    /// At most for so long.
    pub(crate) time: Duration,
}

/// All lines of a manager, by the names of the locks.
pub(crate) struct Lines<W, T> {
    lines: Mutex<ByName<W, T>>,
    limits: Limits,
}

struct ByName<W, T> {
    lines: HashMap<Box<str>, Line<W, T>>,
    last_id: u64,
    /// In how many of them a turn was handed out that is not picked up yet.
    handed: usize,
}

/// One line: there is one as long as somebody is ahead, or the lock is kept here.
struct Line<W, T> {
    waiting: VecDeque<Waiter<W>>,
    /// A waiter that was taken out to get the lock, which is on its way.
    called: Option<u64>,
    /// A turn that lies ready for its waiter. Boxed, because most lines have none.
    handed: Option<Box<Handed<T>>>,
    /// Since when another process waits, and how often the lock was handed over since.
    wanted: Option<(Instant, u32)>,
    /// The lock, while nobody has it and it is kept for the next call; and until when.
    /// Boxed, because most lines are of locks that somebody has.
    kept: Option<Box<(T, Instant)>>,
}

impl<W, T> Line<W, T> {
    fn new() -> Self {
        Self { waiting: VecDeque::new(), called: None, handed: None, wanted: None, kept: None }
    }
}

/// Where a newcomer stands.
#[derive(Debug)]
pub(crate) enum Joined<W, T> {
    /// In front of all others, with the lock if it was kept here.
    Ahead(Ahead<W, T>, Option<T>),
    /// Behind somebody.
    Behind(Place<W, T>),
}

/// What became of a lock that was kept.
#[derive(Debug)]
pub(crate) enum Kept<T> {
    /// It was kept long enough.
    Over(T),
    /// It is to be kept until then.
    Until(Instant),
    /// It is kept no more.
    Gone,
}

impl<W, T> Lines<W, T> {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let by_name = ByName { lines: HashMap::new(), last_id: 0, handed: 0 };
        Arc::new(Self { lines: Mutex::new(by_name), limits })
    }

    /// Gets in line for the lock of this name.
    pub(crate) fn join(self: &Arc<Self>, name: &str, wants: W) -> Joined<W, T>
    where
        W: Clone,
    {
        let mut by_name = self.by_name();
        let ByName { lines, last_id, .. } = &mut *by_name;
        let Some(line) = lines.get_mut(name) else {
            lines.insert(name.into(), Line::new());
            return Joined::Ahead(self.ahead(name.into()), None);
        };
        if let Some(kept) = line.kept.take() {
            return Joined::Ahead(self.ahead(name.into()), Some(kept.0));
        }
        *last_id += 1;
        let (sender, turn) = oneshot::channel();
        let (id, lines, name) = (*last_id, self.clone(), name.into());
        line.waiting.push_back(Waiter { id, wants: wants.clone(), turn: sender });
        Joined::Behind(Place { lines, name, id, wants, turn })
    }

    /// The place in front for the lock of this name, if nobody has it, and the lock if it is kept.
    pub(crate) fn try_join(self: &Arc<Self>, name: &str) -> Option<(Ahead<W, T>, Option<T>)> {
        match self.by_name().lines.entry(name.into()) {
            Entry::Occupied(mut line) => {
                let kept = line.get_mut().kept.take()?;
                Some((self.ahead(line.key().clone()), Some(kept.0)))
            }
            Entry::Vacant(vacant) => {
                let ahead = self.ahead(vacant.key().clone());
                vacant.insert(Line::new());
                Some((ahead, None))
            }
        }
    }

    fn ahead(self: &Arc<Self>, name: Box<str>) -> Ahead<W, T> {
        Ahead { lines: self.clone(), name, left: false }
    }

    /// Another process waits for the lock of this name, or, without a name, for any of them. Those
    /// that were only kept are to be given back.
    #[must_use = "they are not kept any more"]
    pub(crate) fn wanted(&self, name: Option<&str>, now: Instant) -> Vec<T> {
        let lines = &mut self.by_name().lines;
        // In one step: whoever takes a kept lock just then takes the note along.
        let kept = take_kept(lines, name);
        let note = |line: &mut Line<W, T>| {
            line.wanted.get_or_insert((now, 0));
        };
        match name {
            Some(name) => lines.get_mut(name).into_iter().for_each(note),
            None => lines.values_mut().for_each(note),
        }
        kept
    }

    /// The lock of this name, or, without a name, all of them, where they are only kept.
    #[must_use = "they are not kept any more"]
    pub(crate) fn take_kept(&self, name: Option<&str>) -> Vec<T> {
        take_kept(&mut self.by_name().lines, name)
    }

    /// What is to be done at `now` with the lock of this name.
    pub(crate) fn kept(&self, name: &str, now: Instant) -> Kept<T> {
        let lines = &mut self.by_name().lines;
        match lines.get(name).and_then(|line| line.kept.as_ref()).map(|kept| kept.1) {
            None => Kept::Gone,
            Some(until) if until > now => Kept::Until(until),
            Some(_) => {
                let kept = lines.remove(name).and_then(|line| line.kept);
                kept.map_or(Kept::Gone, |kept| Kept::Over(kept.0))
            }
        }
    }

    fn by_name(&self) -> MutexGuard<'_, ByName<W, T>> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take_kept<W, T>(lines: &mut HashMap<Box<str>, Line<W, T>>, name: Option<&str>) -> Vec<T> {
    let is_kept = |line: &Line<W, T>| line.kept.is_some();
    let kept: Vec<_> = match name {
        Some(name) if !lines.get(name).is_some_and(is_kept) => Vec::new(),
        Some(name) => lines.remove(name).into_iter().collect(),
        None => {
            let mut kept: Vec<_> = lines.extract_if(|_, line| is_kept(line)).collect();
            // A map's own order differs from run to run.
            kept.sort_by(|(one, _), (other, _)| one.cmp(other));
            kept.into_iter().map(|(_, line)| line).collect()
        }
    };
    kept.into_iter().filter_map(|line| line.kept).map(|kept| kept.0).collect()
}
