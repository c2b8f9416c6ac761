//! The transactions of this engine, each one atomic step, and how to read their replies. Pure.
//!
//! Any member would answer a transaction that only compares from its own memory, however old
//! (`isTxnSerializable` finds no range in it that has to be linearizable). So each transaction also
//! reads something. A transaction with another one inside counts as a write, which costs the
//! servers a consensus round and a log entry: only removals are made so.

use super::messages::{
    Compare, CompareTarget, Compared, DeleteRangeRequest, Op, OpResponse, PutRequest, RangeRequest,
    RangeResponse, RequestOp, TxnRequest, TxnResponse,
};
use super::names;
use super::session::Session;
use crate::engines::sequenced::{Entry, NewEntry};
use crate::store::{OwnerToken, Sharing};

/// The most operations in one request, with some room: the servers' own limit is 128 by default,
/// for all levels together.
pub(super) const MAX_OPERATIONS: usize = 120;

/// A claim's request for an entry in the queue of each of its keys.
pub(super) struct EnterRequest {
    pub(super) queues: Vec<String>,
    pub(super) token: OwnerToken,
    sharing: Sharing,
    value: Vec<u8>,
}

impl EnterRequest {
    pub(super) fn new(entry: &NewEntry<'_>) -> Self {
        Self {
            queues: entry.keys.iter().map(names::queue_prefix).collect(),
            token: entry.token,
            sharing: entry.sharing,
            value: entry.value.into(),
        }
    }

    /// Returns the names of its entries in this session.
    fn ids(&self, session: &Session) -> impl Iterator<Item = String> {
        let several = self.queues.len() > 1;
        let name = names::entry_name(self.token, self.sharing, several, session.lease);
        self.queues.iter().map(move |queue| [queue, name.as_str()].concat())
    }

    /// Makes all entries or none, and reads the queues. If it makes none, the session's key comes
    /// first.
    pub(super) fn enter(&self, session: &Session) -> TxnRequest {
        let key = session.key.as_str();
        let unwritten = equal(key, Compared::ModRevision(session.key_revision()));
        let absent = self.ids(session).map(|id| equal(&id, Compared::CreateRevision(0)));
        let puts = self.ids(session).map(|id| {
            let (key, value, lease) = (id.into(), self.value.clone(), session.lease);
            op(Op::Put(PutRequest { key, value, lease }))
        });
        let queues = || self.queues.iter().map(|queue| op(Op::Range(queue_range(queue))));
        TxnRequest {
            compare: std::iter::once(unwritten).chain(absent).collect(),
            success: puts.chain(queues()).collect(),
            failure: std::iter::once(op(Op::Range(single_key(key)))).chain(queues()).collect(),
        }
    }

    /// Returns the queues in the reply, in the order of the keys.
    pub(super) fn queues_in(&self, response: &TxnResponse) -> Option<Vec<Vec<Entry>>> {
        let ranges: Vec<_> = response.responses.iter().filter_map(range_of).collect();
        let ranges = &ranges[ranges.len().checked_sub(self.queues.len())?..];
        let queues = self.queues.iter().zip(ranges);
        Some(queues.map(|(queue, range)| names::entries(queue, range.kvs.clone())).collect())
    }

    /// Returns the claim's entries of this session in these queues: one in each if it entered.
    pub(super) fn ours(&self, session: &Session, queues: &[Vec<Entry>]) -> Vec<Entry> {
        let queues = self.ids(session).zip(queues);
        let ours = queues.filter_map(|(id, queue)| queue.iter().find(|entry| *entry.id == *id));
        ours.cloned().collect()
    }
}

/// Returns the revision at which the session's key was last written, from the reply to a request
/// that had no effect; `None` if the key is gone.
pub(super) fn key_revision_in(response: &TxnResponse) -> Option<i64> {
    let first = response.responses.first().and_then(range_of)?;
    first.kvs.first().map(|kv| kv.mod_revision)
}

/// Checks whether all these entries are still there; if not, which are.
pub(super) fn confirm(session_key: &str, entries: &[(&Entry, usize)]) -> TxnRequest {
    let there = entries.iter().map(|(entry, _)| there(entry));
    let reads = entries.iter().map(|(entry, _)| op(Op::Range(single_key(&entry.id))));
    TxnRequest {
        compare: there.collect(),
        success: vec![op(Op::Range(single_key(session_key)))],
        failure: reads.collect(),
    }
}

/// Returns for each entry, in order, whether it was there, from the reply to [`confirm`].
pub(super) fn confirmed(entries: &[(&Entry, usize)], response: &TxnResponse) -> Vec<bool> {
    if response.succeeded {
        return vec![true; entries.len()];
    }
    let reads = response.responses.iter().map(range_of);
    let found = entries.iter().zip(reads).map(|((entry, _), read)| {
        let kv = read.and_then(|range| range.kvs.first());
        kv.is_some_and(|kv| u64::try_from(kv.create_revision) == Ok(entry.sequence))
    });
    found.collect()
}

/// Removes each of these entries, if its key was not made again since.
pub(super) fn leave(entries: &[(&Entry, usize)]) -> TxnRequest {
    let removals = entries.iter().map(|(entry, _)| {
        let removal = op(Op::Delete(DeleteRangeRequest { key: entry.id.as_bytes().into() }));
        let (compare, success) = (vec![there(entry)], vec![removal]);
        op(Op::Txn(TxnRequest { compare, success, failure: Vec::new() }))
    });
    let (compare, failure) = Default::default();
    TxnRequest { compare, success: removals.collect(), failure }
}

/// Returns for each entry, in order, whether it was removed, from the reply to [`leave`].
pub(super) fn left(response: &TxnResponse) -> impl Iterator<Item = bool> {
    let removed = |op: &_| matches!(op, Some(OpResponse::Txn(response)) if response.succeeded);
    response.responses.iter().map(move |op| removed(&op.response))
}

/// Writes the session's key with its lease: for the first time, or again if it is still there.
pub(super) fn write_session_key(key: &str, lease: i64, at: i64) -> TxnRequest {
    let (key_itself, value) = (key.into(), Vec::new());
    TxnRequest {
        compare: vec![equal(key, Compared::ModRevision(at))],
        success: vec![op(Op::Put(PutRequest { key: key_itself, value, lease }))],
        failure: vec![op(Op::Range(single_key(key)))],
    }
}

/// All entries of a queue.
pub(super) fn queue_range(queue: &str) -> RangeRequest {
    let (key, range_end) = (queue.into(), names::range_end_of(queue));
    RangeRequest { key, range_end, limit: 0, keys_only: true }
}

/// One key, without its value.
pub(super) fn single_key(key: &str) -> RangeRequest {
    RangeRequest { key: key.into(), range_end: Vec::new(), limit: 0, keys_only: true }
}

/// At most `limit` keys from `first` on, of those that begin with `start`, with their values.
pub(super) fn page(first: Vec<u8>, start: &str, limit: i64) -> RangeRequest {
    // A single zero byte means that the range has no end.
    let range_end = if start.is_empty() { vec![0] } else { names::range_end_of(start) };
    // No key is empty.
    let key = if first.is_empty() { vec![0] } else { first };
    RangeRequest { key, range_end, limit, keys_only: false }
}

fn there(entry: &Entry) -> Compare {
    // A sequence is a revision, which was read from an `i64`.
    equal(&entry.id, Compared::CreateRevision(entry.sequence.cast_signed()))
}

fn equal(key: &str, with: Compared) -> Compare {
    let target = match with {
        Compared::CreateRevision(_) => CompareTarget::Create,
        Compared::ModRevision(_) => CompareTarget::Mod,
    };
    Compare { target: target.into(), key: key.into(), with: Some(with) }
}

fn op(op: Op) -> RequestOp {
    RequestOp { op: Some(op) }
}

fn range_of(op: &super::messages::ResponseOp) -> Option<&RangeResponse> {
    match &op.response {
        Some(OpResponse::Range(range)) => Some(range),
        _ => None,
    }
}
