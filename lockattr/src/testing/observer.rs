//! The observer behind [`TestLocks`](super::TestLocks): records the result of each acquisition.

use std::sync::Arc;

use tokio::time::Instant;

use super::Outcome;
use super::record::{Entry, Record};
use crate::lease::LeaseState;
use crate::lock::options::ResolvedOptions;
use crate::observe::recorder::{Observation, Observer};
use crate::{Error, LostReason};

/// Records the acquisitions of the managers of one service.
#[derive(Debug)]
pub(super) struct ServiceObserver {
    record: Arc<Record>,
    service: Arc<str>,
}

/// One acquisition in the record.
#[derive(Debug)]
struct Recorded {
    record: Arc<Record>,
    index: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Asking,
    Holding(Arc<LeaseState>),
    Over,
}

impl ServiceObserver {
    pub(super) fn new(record: &Arc<Record>, service: &str) -> Arc<Self> {
        Arc::new(Self { record: record.clone(), service: service.into() })
    }
}

impl Observer for ServiceObserver {
    fn begin(&self, options: &ResolvedOptions, keys: Vec<String>) -> Box<dyn Observation> {
        let index = self.record.begin(Entry {
            keys,
            template: options.site.map(|site| site.template),
            function: options.function,
            service: self.service.clone(),
            nested: false,
            began: Instant::now(),
            outcome: Outcome::Asking,
            acquired: None,
            ended: None,
        });
        Box::new(Recorded { record: self.record.clone(), index, stage: Stage::Asking })
    }
}

impl Observation for Recorded {
    fn nested(&self) {
        self.record.set_nested(self.index);
    }

    fn waits(&self) {
        self.record.set_outcome(self.index, Outcome::Waiting);
    }

    fn acquired(&mut self, hold: &Arc<LeaseState>) {
        self.record.acquired(self.index, hold.fencing());
        self.stage = Stage::Holding(hold.clone());
    }

    fn refused(&mut self, error: &Error) {
        self.end(match error {
            Error::Contended { .. } => Outcome::Contended,
            Error::Store { .. } => Outcome::Unavailable,
            Error::Lost { reason, .. } => Outcome::Lost(*reason),
            Error::ShutDown { .. } => Outcome::ShutDown,
            Error::Deadlock { .. } => Outcome::Deadlock,
            _ => Outcome::Invalid,
        });
    }

    fn lost(&mut self, reason: LostReason) {
        self.end(Outcome::Lost(reason));
    }
}

impl Recorded {
    fn end(&mut self, outcome: Outcome) {
        self.record.set_outcome(self.index, outcome);
        self.stage = Stage::Over;
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let outcome = match &self.stage {
            Stage::Asking => Outcome::Cancelled,
            Stage::Holding(hold) => match hold.check(Instant::now()) {
                Ok(()) | Err(LostReason::Released) => Outcome::Released,
                Err(reason) => Outcome::Lost(reason),
            },
            Stage::Over => return,
        };
        self.end(outcome);
    }
}
