//! The waits and holds of all tasks, as the tasks see them, by which `waits.rs` judges.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lockattr_history::Mode;

use crate::machine::elapsed;
use crate::turn::Turn;

/// The notes of one world; clones are the same notes.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog(Rc<RefCell<Vec<Note>>>);

/// One wait, or one hold.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) process: usize,
    pub(crate) keys: Vec<&'static str>,
    pub(crate) mode: Mode,
    pub(crate) what: What,
    pub(crate) began: Duration,
    /// When it ended; `Duration::MAX` while it has not.
    pub(crate) ended: Duration,
}

/// What was noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The task held the lock.
    Held,
    /// The task waited until it was granted or refused, or gave up.
    Waited,
    /// The task waited, and got an error of the store.
    Failed(String),
}

/// A note whose end is recorded when this is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    event_log: EventLog,
    nth: usize,
    at_least_until: Duration,
}

impl EventLog {
    /// Notes that a task of this process begins to wait.
    pub(crate) fn begin_wait(&self, process: usize, turn: &Turn) -> Open {
        self.note(process, turn, What::Waited, Duration::ZERO)
    }

    /// Notes that a task of this process holds the lock, at least for as long as its options say.
    pub(crate) fn begin_hold(&self, process: usize, turn: &Turn) -> Open {
        self.note(process, turn, What::Held, elapsed() + turn.at_least)
    }

    fn note(&self, process: usize, turn: &Turn, what: What, at_least_until: Duration) -> Open {
        let (keys, mode, began) = (turn.keys.clone(), turn.mode, elapsed());
        let mut notes = self.0.borrow_mut();
        notes.push(Note { process, keys, mode, what, began, ended: Duration::MAX });
        Open { event_log: self.clone(), nth: notes.len() - 1, at_least_until }
    }

    /// Returns all notes.
    pub(crate) fn notes(&self) -> Vec<Note> {
        self.0.borrow().clone()
    }
}

impl Open {
    /// Notes that the wait ended with an error of the store.
    pub(crate) fn set_failed(&self, error: &lockattr::Error) {
        self.event_log.0.borrow_mut()[self.nth].what = What::Failed(error.to_string());
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let ended = elapsed().max(self.at_least_until);
        self.event_log.0.borrow_mut()[self.nth].ended = ended;
    }
}

impl Note {
    pub(crate) fn spans(&self, at: Duration) -> bool {
        (self.began..self.ended).contains(&at)
    }

    /// Returns whether both concern the same lock.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.keys.iter().any(|key| other.keys.contains(key))
    }
}
