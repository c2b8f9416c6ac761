//! What the tasks of all processes wait for and have, as they see it: what is judged about waiting
//! (`waits.rs`) is judged by this.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lockattr_history::Mode;

use crate::machine::elapsed;
use crate::turn::Turn;

/// The notes of one world; its clones are the same ones.
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
    /// When it ended; never, if its process was not asked any more.
    pub(crate) ended: Duration,
}

/// What was noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The task had the lock.
    Held,
    /// It waited, until it was granted or refused, or gave up.
    Waited,
    /// It waited, and an error of the store was the answer.
    Failed(String),
}

/// A note whose end is written down when this is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    event_log: EventLog,
    nth: usize,
    at_least_until: Duration,
}

impl EventLog {
    /// A task of this process begins to wait.
    pub(crate) fn waits(&self, process: usize, turn: &Turn) -> Open {
        self.note(process, turn, What::Waited, Duration::ZERO)
    }

    /// A task of this process has the lock now, and keeps it for as long as its options say at least.
    pub(crate) fn holds(&self, process: usize, turn: &Turn) -> Open {
        self.note(process, turn, What::Held, elapsed() + turn.at_least)
    }

    fn note(&self, process: usize, turn: &Turn, what: What, at_least_until: Duration) -> Open {
        let (keys, mode, began) = (turn.keys.clone(), turn.mode, elapsed());
        let mut notes = self.0.borrow_mut();
        notes.push(Note { process, keys, mode, what, began, ended: Duration::MAX });
        Open { event_log: self.clone(), nth: notes.len() - 1, at_least_until }
    }

    /// All of them.
    pub(crate) fn notes(&self) -> Vec<Note> {
        self.0.borrow().clone()
    }
}

impl Open {
    /// The store's error was the answer.
    pub(crate) fn fails(&self, error: &lockattr::Error) {
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

    /// Whether both are about one lock.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.keys.iter().any(|key| other.keys.contains(key))
    }
}
