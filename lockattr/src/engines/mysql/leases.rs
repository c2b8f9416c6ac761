//! Locks with leases, kept as rows: requests over a few connections, several in one statement.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::config::Config;
use super::connection::Connection;
use super::connection_slot::ConnectionSlot;
use super::failure::unexpected_reply;
use super::listener::Listener;
use super::requests::{DatabaseReply, DatabaseRequest};
use super::{free, held_locks, request};
use crate::engines::contended::Contended;
use crate::engines::sql::Unanswered;
use crate::store::{
    AcquireOutcome, AcquireRequest, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, StoreError, Subscriber, Waiting,
};
use crate::{HeldLocks, Holder, HolderId};

pub(super) struct Leases {
    pub(super) slots: Box<[Arc<ConnectionSlot>]>,
    pub(super) unanswered: Unanswered<Connection>,
    listener: Arc<Listener>,
    contended: Contended,
}

impl Leases {
    pub(super) fn new(config: &Arc<Config>) -> Self {
        let slots = (0..config.timing.database_connections())
            .map(|_| ConnectionSlot::new(config.clone()))
            .collect();
        let (listener, unanswered) = (Listener::new(config.clone()), Unanswered::default());
        Self { slots, unanswered, listener, contended: Contended::new() }
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
        let slot = self.slot(claim.key());
        if free::acquires_free(request) && !self.contended.contains(name, Instant::now()) {
            let insert = DatabaseRequest::Insert(request.clone(), listener.clone());
            match self.run(slot, insert).await? {
                DatabaseReply::Inserted(Some(fencing)) => {
                    return Ok(AcquireOutcome::Acquired { fencing, contended: false });
                }
                DatabaseReply::Inserted(None) => claim.returns(),
                _ => return Err(unexpected_reply("an acquisition")),
            }
        }
        if may_wait {
            claim.enter_queue(request.ttl, Waiting::Queued);
        }
        let sent = Instant::now();
        let acquire = DatabaseRequest::Acquire(request.clone(), listener.clone());
        let rows = self.query(slot, acquire).await?;
        let queued = may_wait.then_some(request.ttl);
        let (outcome, clock) = request::granted(rows, queued)
            .ok_or_else(|| unexpected_reply("`CALL lockattr_v2_acquire`"))?;
        if let Some(micros) = clock {
            self.listener.saw_clock(sent, micros);
        }
        if !matches!(outcome, AcquireOutcome::Acquired { contended: false, .. }) {
            self.contended.note(name);
        }
        Ok(outcome)
    }

    pub(super) async fn renew(
        &self,
        renewals: &[RenewRequest],
    ) -> Vec<Result<RenewOutcome, StoreError>> {
        let renewed = renewals.iter().map(async |renewal| {
            let slot = self.slot(renewal.claim.key());
            match self.run(slot, DatabaseRequest::Renew(renewal.clone())).await? {
                DatabaseReply::Held(true) => Ok(RenewOutcome::Renewed),
                DatabaseReply::Held(false) => Ok(RenewOutcome::NotHeld),
                _ => Err(unexpected_reply("a renewal")),
            }
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
            let held = self.release_one(release, plain).await?;
            Ok(if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld })
        });
        join_all(released).await
    }

    pub(super) async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let rows = self.query(&self.slots[0], request::holder(key)).await?;
        let held =
            |row| request::held_by(row).ok_or_else(|| unexpected_reply("the query for a holder"));
        rows.into_iter().next().map(held).transpose()
    }

    pub(super) async fn held_locks(&self, prefix: &str) -> Result<HeldLocks, StoreError> {
        let rows = self.query(&self.slots[0], held_locks::held_locks(prefix)).await?;
        held_locks::held(rows, prefix).ok_or_else(|| unexpected_reply("the query for all locks"))
    }

    pub(super) async fn force_release(
        &self,
        key: &LockKey,
        holder: HolderId,
    ) -> Result<bool, StoreError> {
        let slot = self.slot(key);
        let rows = self.query(slot, held_locks::holders(key)).await?;
        let token = held_locks::token_of(rows, holder);
        let Some(token) = token.ok_or_else(|| unexpected_reply("the query for all holders"))?
        else {
            return Ok(false);
        };
        let rows = self.query(slot, held_locks::force_release(key, &token)).await?;
        let released = request::held(rows).and_then(|held| held.first().copied());
        released.ok_or_else(|| unexpected_reply("`CALL lockattr_v2_release_each`"))
    }

    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        self.query(&self.slots[0], request::ping()).await.map(drop)
    }
}
