//! Reads queues, and waits for changes in them.

use super::call::RANGE;
use super::connection::Connection;
use super::core::Core;
use super::messages::{KeyValue, RangeRequest, RangeResponse};
use super::watches::Watch;
use super::{names, requests};
use crate::engines::sequenced::{Entry, EntryValue, LockQueue, LockQueues, Permit};
use crate::store::StoreError;
use crate::store::silence::unless_silent;

/// How many entries are read at once: far below the 4 MiB that a reply may have.
const PAGE: i64 = 1000;

impl Core {
    pub(super) async fn queue(&self, queue: &str) -> Result<Vec<Entry>, StoreError> {
        let found: Result<RangeResponse, _> =
            self.connection.send(RANGE, &requests::queue_range(queue)).await;
        let found = found.map_err(|failure| failure.error)?;
        let mut entries = names::entries(queue, found.kvs);
        if let Some(session) = self.session() {
            session.names.put_claims(queue, session.lease, &mut entries);
        }
        Ok(entries)
    }

    /// Returns the queues under all names that begin with `prefix`.
    pub(super) async fn queues(&self, prefix: &str) -> Result<LockQueues, StoreError> {
        let start = names::encoded_prefix(prefix);
        let (mut kvs, mut first) = (Vec::new(), start.clone().into_bytes());
        loop {
            let request = requests::page(first, &start, PAGE);
            let found: Result<RangeResponse, _> = self.connection.send(RANGE, &request).await;
            let found = found.map_err(|failure| failure.error)?;
            kvs.extend(found.kvs);
            match kvs.last() {
                // The smallest key after it.
                Some(last) if found.more => first = [&last.key[..], &[0]].concat(),
                _ => break,
            }
        }
        let mut found = names::queues(prefix, kvs);
        if let Some(session) = self.session() {
            for LockQueue { key, entries, .. } in &mut found.queues {
                session.names.put_claims(&names::queue_prefix(key), session.lease, entries);
            }
        }
        Ok(found)
    }

    pub(super) async fn value(&self, entry: &Entry) -> Result<Option<EntryValue>, StoreError> {
        let request = RangeRequest { keys_only: false, ..requests::single_key(&entry.id) };
        let found: Result<RangeResponse, _> = self.connection.send(RANGE, &request).await;
        let found = found.map_err(|failure| failure.error)?;
        let ours = |kv: &_| is_entry(kv, entry);
        let kv = found.kvs.into_iter().find(ours);
        Ok(kv.map(|kv| names::written(&kv)))
    }

    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        let request = requests::single_key(names::SESSIONS);
        let found: Result<RangeResponse, _> = self.connection.send(RANGE, &request).await;
        found.map(drop).map_err(|failure| failure.error)
    }

    pub(super) async fn wait_until_gone(&self, entry: &Entry, permit: Permit) {
        let Ok(live) = self.connection.get().await else { return };
        let mut watch = live.watches.removal(&entry.id);
        if !self.is_created(&live, &mut watch).await {
            return;
        }
        let found: Result<RangeResponse, _> =
            self.connection.send(RANGE, &requests::single_key(&entry.id)).await;
        drop(permit);
        if found.is_ok_and(|found| found.kvs.iter().any(|kv| is_entry(kv, entry))) {
            watch.outcome().await;
        }
    }

    pub(super) async fn wait_until_grown(&self, queue: &str, seen: &[Entry], permit: Permit) {
        let Ok(live) = self.connection.get().await else { return };
        let mut watch = live.watches.arrival(queue, names::range_end_of(queue));
        if self.is_created(&live, &mut watch).await
            && let Ok(found) = self.queue(queue).await
            && found.iter().all(|entry| seen.contains(entry))
        {
            drop(permit);
            watch.outcome().await;
        }
    }

    /// Whether the member confirms the watch in time.
    pub(super) async fn is_created(&self, live: &Connection, watch: &mut Watch) -> bool {
        let limit = self.connection.config.timing.response_timeout;
        let there = unless_silent(&live.last_reply, limit, watch.is_created()).await;
        if there.is_none() {
            self.connection.disconnect(live);
        }
        there == Some(true)
    }
}

fn is_entry(kv: &KeyValue, entry: &Entry) -> bool {
    u64::try_from(kv.create_revision) == Ok(entry.sequence)
}
