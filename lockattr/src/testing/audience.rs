//! Who looks on while a manager locks: hands each acquisition's news to the record.

use std::sync::Arc;

use tokio::time::Instant;

use super::Outcome;
use super::record::{Entry, Record};
use crate::hold::Hold;
use crate::options::Terms;
use crate::{Error, LockGuard, LostReason};

/// Who records a manager's acquisitions, if anybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audience(Option<(Arc<Record>, Arc<str>)>);

/// Where one of them is recorded, if it is. Dropped, it is over.
#[derive(Debug, Default)]
pub(crate) struct Seat(Option<Taken>);

#[derive(Debug)]
struct Taken {
    record: Arc<Record>,
    number: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Asking,
    Holding(Arc<Hold>),
    Over,
}

impl Audience {
    /// Records what a manager of this service locks.
    pub(super) fn new(record: &Arc<Record>, service: &str) -> Self {
        Self(Some((record.clone(), service.into())))
    }

    /// An acquisition begins.
    pub(crate) fn seat<'a>(&self, terms: &Terms, keys: impl Iterator<Item = &'a str>) -> Seat {
        Seat(self.0.as_ref().map(|(record, service)| {
            let number = record.begin(Entry {
                keys: keys.map(str::to_owned).collect(),
                template: terms.site.map(|site| site.template),
                function: terms.function,
                service: service.clone(),
                nested: false,
                began: Instant::now(),
                outcome: Outcome::Asking,
                acquired: None,
                ended: None,
            });
            Taken { record: record.clone(), number, stage: Stage::Asking }
        }))
    }
}

impl Seat {
    /// It is a nested call that enters again.
    pub(crate) fn nested(self) -> Self {
        if let Some(taken) = &self.0 {
            taken.record.is_nested(taken.number);
        }
        self
    }

    /// It waits from here on.
    pub(crate) fn waits(&self) {
        if let Some(taken) = &self.0 {
            taken.record.comes_to(taken.number, Outcome::Waiting);
        }
    }

    /// It has the lock.
    pub(crate) fn acquired(&mut self, guard: &LockGuard) {
        if let Some(taken) = &mut self.0 {
            taken.record.acquired(taken.number, guard.fencing_token());
            taken.stage = Stage::Holding(guard.frame().hold().clone());
        }
    }

    /// The acquisition is over.
    pub(crate) fn over(&mut self, outcome: &Result<LockGuard, Error>) {
        let error = match outcome {
            Ok(guard) => return self.acquired(guard),
            Err(error) => error,
        };
        if let Some(taken) = &mut self.0 {
            taken.ends(match error {
                Error::Contended { .. } => Outcome::Contended,
                Error::Store { .. } => Outcome::Unavailable,
                Error::Lost { reason, .. } => Outcome::Lost(*reason),
                Error::ShutDown { .. } => Outcome::ShutDown,
                Error::Deadlock { .. } => Outcome::Deadlock,
                _ => Outcome::Invalid,
            });
        }
    }

    /// The hold was lost: its release says so.
    pub(crate) fn lost(&mut self, reason: LostReason) {
        if let Some(taken) = &mut self.0 {
            taken.ends(Outcome::Lost(reason));
        }
    }
}

impl Taken {
    fn ends(&mut self, outcome: Outcome) {
        self.record.comes_to(self.number, outcome);
        self.stage = Stage::Over;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let outcome = match &self.stage {
            Stage::Asking => Outcome::Cancelled,
            Stage::Holding(hold) => match hold.check(Instant::now()) {
                Ok(()) | Err(LostReason::Released) => Outcome::Released,
                Err(reason) => Outcome::Lost(reason),
            },
            Stage::Over => return,
        };
        self.ends(outcome);
    }
}
