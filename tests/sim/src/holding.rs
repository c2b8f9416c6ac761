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

    pub(crate) fn asks(&self, key: &str, op: Op) -> Call {
        self.recorder.invoke(self.chain, key, op)
    }

    fn asks_all(&self, op: Op) -> Vec<Call> {
        self.keys.iter().map(|key| self.asks(key, op)).collect()
    }

    /// Checks whether it is still held.
    pub(crate) fn check(&self, lease: &Lease) -> bool {
        let asked = self.asks_all(Op::Check);
        let held = lease.ensure_held().is_ok();
        asked.into_iter().for_each(|call| if held { call.ok(None) } else { call.fail() });
        held
    }

    /// Extends the lease.
    pub(crate) async fn extended(&self, lease: &Lease, ttl: Duration) {
        let asked = self.asks_all(Op::Renew);
        match lease.extend(ttl).await {
            Ok(()) => asked.into_iter().for_each(|call| call.ok(None)),
            Err(Error::Lost { .. }) => asked.into_iter().for_each(Call::fail),
            Err(_) => asked.into_iter().for_each(Call::unknown),
        }
    }

    /// Leaves a re-entry.
    pub(crate) fn leaves(&self, key: &str, inner: LockGuard) {
        let asked = self.asks(key, Op::Leave);
        drop(inner);
        asked.ok(None);
    }

    /// Records that the holder learns of the loss.
    pub(crate) fn lost(self) {
        self.over.set(true);
        self.keys.iter().for_each(|key| self.recorder.lost(self.chain, key));
    }

    /// Records that the release begins.
    pub(crate) fn releases(self) -> Vec<Call> {
        self.over.set(true);
        self.asks_all(Op::Release)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if !self.over.get() && !self.life.is_over() {
            self.asks_all(Op::Release).into_iter().for_each(Call::unknown);
        }
    }
}
