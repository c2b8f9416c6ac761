//! The history of one call chain: only what the chain knows.

use std::sync::atomic::{AtomicBool, Ordering};

use lockattr::{Error, Lease};
use lockattr_history::{Call, Mode, Op, Recorder};

/// One chain and its keys. A lock on several keys has a separate history for each key.
pub(super) struct Chain<'a> {
    recorder: &'a Recorder,
    id: u32,
    keys: Vec<&'static str>,
    lost: AtomicBool,
}

/// The same call for each of the keys. If it is dropped without an end, its outcome is unknown.
pub(super) struct Calls(Vec<Call>);

impl<'a> Chain<'a> {
    pub(super) fn new(recorder: &'a Recorder, id: u32, keys: Vec<&'static str>) -> Self {
        Self { recorder, id, keys, lost: AtomicBool::new(false) }
    }

    pub(super) fn invoke_acquire(&self, mode: Mode) -> Calls {
        self.invoke(Op::Acquire(mode))
    }

    /// One key of the hold, in a nested call.
    pub(super) fn invoke_reenter(&self, key: &str) -> Call {
        self.recorder.invoke(self.id, key, Op::Reenter)
    }

    pub(super) fn invoke_leave(&self, key: &str) -> Call {
        self.recorder.invoke(self.id, key, Op::Leave)
    }

    pub(super) fn invoke_renew(&self) -> Calls {
        self.invoke(Op::Renew)
    }

    /// Whether the lease is good, by the holder's own clock.
    pub(super) fn check(&self, lease: &Lease) -> bool {
        let check = self.invoke(Op::Check);
        let held = lease.ensure_held().is_ok();
        if held {
            check.ok(None);
        } else {
            check.fail();
            self.record_loss();
        }
        held
    }

    /// The hold is about to be released, if it still exists. The lease is checked after the call
    /// begins: a process that was stopped before the check did not hold up to then.
    pub(super) fn invoke_release(&self, lease: &Lease) -> Option<Calls> {
        let release = self.invoke(Op::Release);
        if lease.ensure_held().is_ok() {
            return Some(release);
        }
        self.record_loss();
        release.fail();
        None
    }

    /// Records once that the chain has learned of the loss.
    pub(super) fn record_loss(&self) {
        if !self.lost.swap(true, Ordering::Relaxed) {
            self.keys.iter().for_each(|key| self.recorder.lost(self.id, key));
        }
    }

    fn invoke(&self, op: Op) -> Calls {
        Calls(self.keys.iter().map(|key| self.recorder.invoke(self.id, key, op)).collect())
    }
}

impl Calls {
    pub(super) fn ok(self, fence: Option<u64>) {
        self.0.into_iter().for_each(|call| call.ok(fence));
    }

    pub(super) fn fail(self) {
        self.0.into_iter().for_each(Call::fail);
    }

    pub(super) fn unknown(self) {
        self.0.into_iter().for_each(Call::unknown);
    }

    /// Records the outcome of a failed acquire, as far as its caller knows it.
    pub(super) fn refused(self, error: &Error) {
        match error {
            Error::Contended { .. } | Error::ShutDown { .. } => self.fail(),
            _ => self.unknown(),
        }
    }
}
