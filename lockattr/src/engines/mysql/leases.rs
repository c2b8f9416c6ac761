//! Locks with leases, kept as rows: requests over a few connections, by one `CALL` each.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::config::Config;
use super::listener::Listener;
use super::worker::{ConnectionSlot, Query};
use super::{held_locks, request};
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, StoreError, Subscriber, Waiting, connection_for,
};
use crate::{HeldLock, Holder};

/// Most claims in one statement. Each release is a transaction, which may wait for the disk.
const MAX_RENEWALS: usize = 100;
const MAX_RELEASES: usize = 20;

pub(super) struct Leases {
    slots: Box<[ConnectionSlot]>,
    listener: Arc<Listener>,
}

impl Leases {
    pub(super) fn new(config: &Arc<Config>) -> Self {
        let slots =
            (0..config.timing.connections()).map(|_| ConnectionSlot::new(config.clone())).collect();
        Self { slots, listener: Listener::new(config.clone()) }
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
        let subscription = match may_wait || self.listener.has_subscribers() {
            true => self.listener.listen().await,
            false => Ok("".into()),
        };
        let subscription = match subscription {
            Err(error) if may_wait => return Err(error),
            subscription => subscription.unwrap_or_default(),
        };
        if may_wait {
            request.claim.enter_queue(request.ttl, Waiting::Queued);
        }
        let sent = Instant::now();
        let rows = self.slot(&request.claim).run(request::acquire(request, &subscription)).await?;
        let (outcome, clock) = request::granted(rows, may_wait).ok_or_else(unexpected_reply)?;
        if let Some(micros) = clock {
            self.listener.saw_clock(sent, micros);
        }
        Ok(outcome)
    }

    /// Whether each claim held its locks, in the order of `items`. Sends one statement for each
    /// connection and batch of `most` claims, all at once.
    async fn run_batches<I>(
        &self,
        items: &[I],
        most: usize,
        claim: impl Fn(&I) -> &Claim,
        statement: impl Fn(&[&I]) -> Query,
    ) -> Vec<Result<bool, StoreError>> {
        let mut by_slot = vec![Vec::new(); self.slots.len()];
        for (index, item) in items.iter().enumerate() {
            by_slot[self.slot_index(claim(item))].push(index);
        }
        let mut batches = Vec::new();
        for (slot, mut indices) in self.slots.iter().zip(by_slot) {
            // In one order, so that two batches cannot deadlock.
            indices.sort_by_key(|&index| claim(&items[index]).key().name());
            for indices in indices.chunks(most) {
                let batch: Vec<&I> = indices.iter().map(|&index| &items[index]).collect();
                batches.push((indices.to_vec(), slot.run(statement(&batch))));
            }
        }
        let mut outcomes = vec![Err(unexpected_reply()); items.len()];
        let replies = batches.into_iter().map(async |(indices, reply)| (indices, reply.await));
        for (indices, reply) in join_all(replies).await {
            let held = reply.and_then(|rows| request::held(rows).ok_or_else(unexpected_reply));
            for (nth, index) in indices.into_iter().enumerate() {
                outcomes[index] = match &held {
                    Ok(held) => held.get(nth).copied().ok_or_else(unexpected_reply),
                    Err(error) => Err(error.clone()),
                };
            }
        }
        outcomes
    }

    /// The connection for a claim: always the same one, so that requests keep their order.
    fn slot_index(&self, claim: &Claim) -> usize {
        self.connection_for(claim.key())
    }

    fn connection_for(&self, key: &LockKey) -> usize {
        connection_for(key, self.slots.len())
    }

    fn slot(&self, claim: &Claim) -> &ConnectionSlot {
        self.slot_of(claim.key())
    }

    fn slot_of(&self, key: &LockKey) -> &ConnectionSlot {
        &self.slots[self.connection_for(key)]
    }

    pub(super) async fn renew(
        &self,
        renewals: &[RenewRequest],
    ) -> Vec<Result<RenewOutcome, StoreError>> {
        let statement = |batch: &[&RenewRequest]| request::renew(batch.iter().copied());
        let held = self.run_batches(renewals, MAX_RENEWALS, |item| &*item.claim, statement).await;
        let renewed = |held| if held { RenewOutcome::Renewed } else { RenewOutcome::NotHeld };
        held.into_iter().map(|held| held.map(renewed)).collect()
    }

    pub(super) async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let statement = |batch: &[&ReleaseRequest]| request::release(batch.iter().copied());
        let held = self.run_batches(releases, MAX_RELEASES, |item| &*item.claim, statement).await;
        let released = |held| if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld };
        held.into_iter().map(|held| held.map(released)).collect()
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

fn unexpected_reply() -> StoreError {
    StoreError::new("the server sent an unexpected reply")
}
