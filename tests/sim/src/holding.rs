//! A hold as its holder records it: dropping it records a release whose outcome is unknown.

use std::cell::Cell;
use std::time::Duration;

use lockattr::{Error, Lease, LockGuard};
use lockattr_history::{Call, Op, Recorder};

use crate::event_log::Open;
use crate::life::Life;

/// One hold of one call chain, of one or several keys.
#[derive(Debug)]
pub(crate) struct Holding {
    recorder: Recorder,
    life: Life,
    chain: u32,
    keys: Vec<&'static str>,
    over: Cell<bool>,
    /// Its note in the event log, until it ends.
    _note: Open,
}

impl Holding {
    pub(crate) fn new(
        recorder: Recorder,
        life: Life,
        chain: u32,
        keys: &[&'static str],
        note: Open,
    ) -> Self {
        let (keys, over) = (keys.to_vec(), Cell::new(false));
        Self { recorder, life, chain, keys, over, _note: note }
    }

    pub(crate) fn invoke(&self, key: &str, op: Op) -> Call {
        self.recorder.invoke(self.chain, key, op)
    }

    fn invoke_all(&self, op: Op) -> Vec<Call> {
        self.keys.iter().map(|key| self.invoke(key, op)).collect()
    }

    /// Checks whether it is still held.
    pub(crate) fn check(&self, lease: &Lease) -> bool {
        let calls = self.invoke_all(Op::Check);
        let held = lease.ensure_held().is_ok();
        calls.into_iter().for_each(|call| if held { call.ok(None) } else { call.fail() });
        held
    }

    /// Extends the lease.
    pub(crate) async fn extend(&self, lease: &Lease, ttl: Duration) {
        let calls = self.invoke_all(Op::Renew);
        match lease.extend(ttl).await {
            Ok(()) => calls.into_iter().for_each(|call| call.ok(None)),
            Err(Error::Lost { .. }) => calls.into_iter().for_each(Call::fail),
            Err(_) => calls.into_iter().for_each(Call::unknown),
        }
    }

    /// Leaves a re-entry.
    pub(crate) fn leave(&self, key: &str, inner: LockGuard) {
        let calls = self.invoke(key, Op::Leave);
        drop(inner);
        calls.ok(None);
    }

    /// Records that the holder learns of the loss.
    pub(crate) fn record_loss(self) {
        self.over.set(true);
        self.keys.iter().for_each(|key| self.recorder.lost(self.chain, key));
    }

    /// Records that the release begins.
    pub(crate) fn begin_release(self) -> Vec<Call> {
        self.over.set(true);
        self.invoke_all(Op::Release)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if !self.over.get() && !self.life.is_over() {
            self.invoke_all(Op::Release).into_iter().for_each(Call::unknown);
        }
    }
}
