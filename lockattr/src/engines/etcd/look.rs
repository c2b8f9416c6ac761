//! Looking at lines, and being told when they change.

use tokio::time::timeout;

use super::call::RANGE;
use super::core::Core;
use super::link::Live;
use super::messages::{KeyValue, RangeRequest, RangeResponse};
use super::watches::Watch;
use super::{names, requests};
use crate::engines::ordered::{Entry, Line, Written};
use crate::store::StoreError;

/// So many entries are read at once: far from the 4 MiB that an answer may have.
const PAGE: i64 = 1000;

impl Core {
    pub(super) async fn line(&self, line: &str) -> Result<Vec<Entry>, StoreError> {
        let found: Result<RangeResponse, _> = self.link.ask(RANGE, &requests::whole(line)).await;
        let found = found.map_err(|failure| failure.error)?;
        Ok(names::entries(line, found.kvs))
    }

    /// The lines under all names that begin with this.
    pub(super) async fn lines(&self, prefix: &str) -> Result<Vec<Line>, StoreError> {
        let start = names::start_of(prefix);
        let (mut kvs, mut first) = (Vec::new(), start.clone().into_bytes());
        loop {
            let asked = requests::page(first, &start, PAGE);
            let found: Result<RangeResponse, _> = self.link.ask(RANGE, &asked).await;
            let found = found.map_err(|failure| failure.error)?;
            kvs.extend(found.kvs);
            match kvs.last() {
                // Behind it, nothing is smaller.
                Some(last) if found.more => first = [&last.key[..], &[0]].concat(),
                _ => return Ok(names::lines(prefix, kvs)),
            }
        }
    }

    pub(super) async fn value(&self, entry: &Entry) -> Result<Option<Written>, StoreError> {
        let asked = RangeRequest { keys_only: false, ..requests::one(&entry.id) };
        let found: Result<RangeResponse, _> = self.link.ask(RANGE, &asked).await;
        let found = found.map_err(|failure| failure.error)?;
        let ours = |kv: &_| is_place(kv, entry);
        let kv = found.kvs.into_iter().find(ours);
        Ok(kv.map(|kv| names::written(&kv)))
    }

    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        let asked = requests::one(names::SESSIONS);
        let found: Result<RangeResponse, _> = self.link.ask(RANGE, &asked).await;
        found.map(drop).map_err(|failure| failure.error)
    }

    pub(super) async fn gone(&self, entry: &Entry) {
        let Ok(live) = self.link.get().await else { return };
        let mut watch = live.watches.removal(&entry.id);
        if !self.is_there(&live, &mut watch).await {
            return;
        }
        let found: Result<RangeResponse, _> = self.link.ask(RANGE, &requests::one(&entry.id)).await;
        if found.is_ok_and(|found| found.kvs.iter().any(|kv| is_place(kv, entry))) {
            watch.seen().await;
        }
    }

    pub(super) async fn grown(&self, line: &str, seen: &[Entry]) {
        let Ok(live) = self.link.get().await else { return };
        let mut watch = live.watches.arrival(line, names::end_of(line));
        if self.is_there(&live, &mut watch).await
            && let Ok(found) = self.line(line).await
            && found.iter().all(|entry| seen.contains(entry))
        {
            watch.seen().await;
        }
    }

    /// Whether the member watches, in time.
    pub(super) async fn is_there(&self, live: &Live, watch: &mut Watch) -> bool {
        let limit = self.link.config.timing.response_timeout;
        let there = timeout(limit, watch.is_there()).await;
        if there.is_err() {
            self.link.leave(live);
        }
        there == Ok(true)
    }
}

fn is_place(kv: &KeyValue, entry: &Entry) -> bool {
    u64::try_from(kv.create_revision) == Ok(entry.place)
}
