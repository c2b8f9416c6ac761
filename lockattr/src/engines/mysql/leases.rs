//! Locks with leases, kept as rows: requests over a few connections, several in one statement.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::batch::unexpected_reply;
use super::config::Config;
use super::listener::Listener;
use super::worker::ConnectionSlot;
use super::{free, held_locks, request};
use crate::engines::contended::Contended;
use crate::store::{
    AcquireOutcome, AcquireRequest, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, StoreError, Subscriber, Waiting, connection_for,
};
use crate::{HeldLock, Holder};

pub(super) struct Leases {
    slots: Box<[ConnectionSlot]>,
    listener: Arc<Listener>,
    contended: Contended,
}

impl Leases {
    pub(super) fn new(config: &Arc<Config>) -> Self {
        let slots =
            (0..config.timing.connections()).map(|_| ConnectionSlot::new(config.clone())).collect();
        Self { slots, listener: Listener::new(config.clone()), contended: Contended::new() }
    }

    pub(super) fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.listener.add(subscriber);
    }

    pub(super) async fn acquire(
        &self,
        request: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let may_wait = request.waiting != Waiting::Not;
        // Listen first: a grant for a process that does not listen would be passed on.
        let listener = match may_wait || self.listener.has_subscribers() {
            true => self.listener.listen().await,
            false => Ok("".into()),
        };
        let listener = match listener {
            Err(error) if may_wait => return Err(error),
            listener => listener.unwrap_or_default(),
        };
        let (claim, name) = (&request.claim, request.claim.key().name());
        let slot = self.slot_of(claim.key());
        if free::acquires_free(request) && !self.contended.contains(name, Instant::now()) {
            let acquired = slot.acquire_free(request.clone(), listener.clone()).await?;
            if let Some(fencing) = acquired {
                return Ok(AcquireOutcome::Acquired { fencing, contended: false });
            }
        }
        if may_wait {
            claim.enter_queue(request.ttl, Waiting::Queued);
        }
        let sent = Instant::now();
        let rows = slot.run(request::acquire(request, &listener)).await?;
        let queued = may_wait.then_some(request.ttl);
        let (outcome, clock) = request::granted(rows, queued).ok_or_else(unexpected_reply)?;
        if let Some(micros) = clock {
            self.listener.saw_clock(sent, micros);
        }
        if !matches!(outcome, AcquireOutcome::Acquired { contended: false, .. }) {
            self.contended.note(name);
        }
        Ok(outcome)
    }

    /// The connection for a lock: always the same one, so that requests keep their order.
    fn slot_of(&self, key: &LockKey) -> &ConnectionSlot {
        &self.slots[connection_for(key, self.slots.len())]
    }

    pub(super) fn answered_since(&self, key: &LockKey, since: Instant) -> bool {
        self.slot_of(key).answered_since(since)
    }

    pub(super) async fn renew(
        &self,
        renewals: &[RenewRequest],
    ) -> Vec<Result<RenewOutcome, StoreError>> {
        let renewed = renewals.iter().map(async |renewal| {
            let held = self.slot_of(renewal.claim.key()).renew(renewal.clone()).await?;
            Ok(if held { RenewOutcome::Renewed } else { RenewOutcome::NotHeld })
        });
        join_all(renewed).await
    }

    pub(super) async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let released = releases.iter().map(async |release| {
            let key = release.claim.key();
            // A claim that waited has an entry in the queue, which only the procedure removes.
            let plain = free::releases_free(release)
                && !self.contended.contains(key.name(), Instant::now());
            let held = self.slot_of(key).release(release.clone(), plain).await?;
            Ok(if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld })
        });
        join_all(released).await
    }

    pub(super) async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let rows = self.slots[0].run(request::holder(key)).await?;
        let held = |row| request::held_by(row).ok_or_else(unexpected_reply);
        rows.into_iter().next().map(held).transpose()
    }

    pub(super) async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        let rows = self.slots[0].run(held_locks::held_locks(prefix)).await?;
        held_locks::held(rows, prefix).ok_or_else(unexpected_reply)
    }

    pub(super) async fn force_release(&self, key: &LockKey) -> Result<bool, StoreError> {
        let rows = self.slot_of(key).run(held_locks::force_release(key)).await?;
        held_locks::force_released(rows).ok_or_else(unexpected_reply)
    }

    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        self.slots[0].run(request::ping()).await.map(drop)
    }
}
