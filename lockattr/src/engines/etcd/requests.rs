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

/// The most queues that a request asks about whether they are empty. It then has another
/// transaction inside, and the limit counts the operations of both.
const MAX_EMPTY_QUEUES: usize = 32;

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

    /// Returns the names of its entries in this session, with this token.
    fn ids(&self, session: &Session, name: OwnerToken) -> impl Iterator<Item = String> {
        let several = self.queues.len() > 1;
        let name = names::entry_name(name, self.sharing, several, session.lease);
        self.queues.iter().map(move |queue| [queue, name.as_str()].concat())
    }

    /// Makes all entries or none. If all queues are empty, it reads nothing, which takes the servers
    /// less time. Else it reads the queues; if it makes no entries, it reads the session's key first
    /// and the entries of these names.
    pub(super) fn enter(&self, session: &Session, name: OwnerToken) -> TxnRequest {
        let key = session.key.as_str();
        let unwritten = || equal(key, Compared::ModRevision(session.key_revision()));
        let absent = self.ids(session, name).map(|id| equal(&id, Compared::CreateRevision(0)));
        let puts = self.ids(session, name).map(|id| {
            let (key, value, lease) = (id.into(), self.value.clone(), session.lease);
            op(Op::Put(PutRequest { key, value, lease }))
        });
        let puts: Vec<_> = puts.collect();
        let queues = || self.queues.iter().map(|queue| op(Op::Range(queue_range(queue))));
        let ours = self.ids(session, name).map(|id| {
            let keys_only = false;
            op(Op::Range(RangeRequest { keys_only, ..single_key(&id) }))
        });
        let first = std::iter::once(op(Op::Range(single_key(key))));
        let among_others = TxnRequest {
            compare: std::iter::once(unwritten()).chain(absent).collect(),
            success: puts.iter().cloned().chain(queues()).collect(),
            failure: first.chain(ours).chain(queues()).collect(),
        };
        if self.queues.len() > MAX_EMPTY_QUEUES {
            return among_others;
        }
        let empty = self.queues.iter().map(|queue| is_empty(queue));
        TxnRequest {
            compare: std::iter::once(unwritten()).chain(empty).collect(),
            success: puts,
            failure: vec![op(Op::Txn(among_others))],
        }
    }

    /// Reads the reply to [`enter`](Self::enter); `None` if it cannot be one.
    pub(super) fn read(
        &self,
        session: &Session,
        name: OwnerToken,
        response: &TxnResponse,
    ) -> Option<EnterReply> {
        let all = self.queues.len();
        let inner = match response.responses.first().and_then(|op| op.response.as_ref()) {
            Some(OpResponse::Txn(inner)) if !response.succeeded => inner,
            _ if response.succeeded && all <= MAX_EMPTY_QUEUES => {
                let counter = u64::try_from(response.header.as_ref()?.revision).ok()?;
                let alone = |id: String| vec![self.entry(&id, counter)];
                let queues = self.ids(session, name).map(alone).collect();
                return Some(EnterReply::Entered { counter, queues });
            }
            _ => response,
        };
        let ranges: Vec<_> = inner.responses.iter().filter_map(range_of).collect();
        let (before, queues) = ranges.split_at(ranges.len().checked_sub(all)?);
        let queues = self.queues.iter().zip(queues).zip(self.ids(session, name));
        let queues: Vec<_> = queues
            .map(|((queue, range), id)| {
                let mut entries = names::entries(queue, range.kvs.clone());
                if let Some(own) = entries.iter_mut().find(|entry| *entry.id == *id) {
                    own.token = self.token;
                }
                entries
            })
            .collect();
        let own =
            |queue: &Vec<Entry>| queue.iter().find(|entry| entry.token == self.token).cloned();
        let ours: Vec<_> = queues.iter().filter_map(own).collect();
        let sequences = || ours.iter().map(|entry| entry.sequence);
        let together = ours.len() == all && sequences().min() == sequences().max();
        let key_revision = match (inner.succeeded, before.split_first()) {
            (true, _) => None,
            (false, Some((key, found))) => {
                let mut found = found.iter().flat_map(|range| &range.kvs);
                // The text of an entry begins with the token of its claim.
                let token = self.token.to_string();
                if found.any(|kv| !kv.value.starts_with(token.as_bytes())) {
                    return Some(EnterReply::NameTaken);
                }
                key.kvs.first().map(|kv| kv.mod_revision)
            }
            (false, None) => return None,
        };
        match sequences().max().filter(|_| together) {
            Some(counter) => Some(EnterReply::Entered { counter, queues }),
            None if inner.succeeded => None,
            None => Some(EnterReply::NotEntered { left: ours, key_revision }),
        }
    }

    fn entry(&self, id: &str, sequence: u64) -> Entry {
        let (token, sharing, several) = (self.token, self.sharing, self.queues.len() > 1);
        Entry { sequence, token, sharing, several, id: id.into() }
    }
}

/// What became of a request to enter.
pub(super) enum EnterReply {
    /// The claim has an entry in each queue, made now or by an earlier request.
    Entered { counter: u64, queues: Vec<Vec<Entry>> },
    /// It has none, or only these, because another program has removed the others.
    NotEntered {
        left: Vec<Entry>,
        /// The revision at which the session's key was last written; `None` if the key is gone.
        key_revision: Option<i64>,
    },
    /// An entry of another claim has one of the names.
    NameTaken,
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

/// Removes each of these entries, if its key was not made again since. That may be for another
/// claim, so a removal that arrives late must not remove it.
pub(super) fn leave(entries: &[(&Entry, usize)]) -> TxnRequest {
    let removal = |entry: &Entry| {
        let removal = op(Op::Delete(DeleteRangeRequest { key: entry.id.as_bytes().into() }));
        TxnRequest { compare: vec![there(entry)], success: vec![removal], failure: Vec::new() }
    };
    if let [(entry, _)] = entries {
        return removal(entry);
    }
    let removals = entries.iter().map(|(entry, _)| op(Op::Txn(removal(entry))));
    let (compare, failure) = Default::default();
    TxnRequest { compare, success: removals.collect(), failure }
}

/// Returns for each of these entries, in order, whether it was removed, from the reply to
/// [`leave`].
pub(super) fn left(entries: &[(&Entry, usize)], response: &TxnResponse) -> Vec<bool> {
    if let [_] = entries {
        return vec![response.succeeded];
    }
    let removed = |op: &_| matches!(op, Some(OpResponse::Txn(response)) if response.succeeded);
    response.responses.iter().map(move |op| removed(&op.response)).collect()
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
    RangeRequest { key, range_end, limit: 0, revision: 0, keys_only: true }
}

/// One key, without its value.
pub(super) fn single_key(key: &str) -> RangeRequest {
    RangeRequest { key: key.into(), range_end: Vec::new(), limit: 0, revision: 0, keys_only: true }
}

/// At most `limit` keys from `first` on, of those that begin with `start`, with their values.
pub(super) fn page(first: Vec<u8>, start: &str, limit: i64) -> RangeRequest {
    // A single zero byte means that the range has no end.
    let range_end = if start.is_empty() { vec![0] } else { names::range_end_of(start) };
    // No key is empty.
    let key = if first.is_empty() { vec![0] } else { first };
    RangeRequest { key, range_end, limit, revision: 0, keys_only: false }
}

/// Whether a queue has no keys. The servers compare a range without keys as one that was never made.
fn is_empty(queue: &str) -> Compare {
    let range_end = names::range_end_of(queue);
    Compare { range_end, ..equal(queue, Compared::CreateRevision(0)) }
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
    let range_end = Vec::new();
    Compare { target: target.into(), key: key.into(), with: Some(with), range_end }
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
