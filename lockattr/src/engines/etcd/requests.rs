//! What is asked for in one step each, and what the answers say. Pure.
//!
//! A transaction that only compares would be answered by any member out of its own memory, however
//! old (`isTxnSerializable` finds no range in it that has to be linearizable): so each of them reads
//! something. One with another inside counts as a write, and costs the servers a round among them
//! and a place in their log: only removals are made so.

use super::messages::{
    Answer, Compare, CompareTarget, Compared, DeleteRangeRequest, Op, PutRequest, RangeRequest,
    RangeResponse, RequestOp, TxnRequest, TxnResponse,
};
use super::names;
use super::session::Session;
use crate::engines::sequenced::{Entry, NewEntry};
use crate::store::{OwnerToken, Sharing};

/// How many operations a server takes at once, and some room: its own limit is 128 by default, for
/// all levels together.
pub(super) const MAX_OPERATIONS: usize = 120;

/// An entry in the line of each key, of a claim that asks.
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

    /// What its entries are called in this session.
    fn ids(&self, session: &Session) -> impl Iterator<Item = String> {
        let several = self.queues.len() > 1;
        let name = names::entry_name(self.token, self.sharing, several, session.lease);
        self.queues.iter().map(move |queue| [queue, name.as_str()].concat())
    }

    /// All entries or none; and the lines, with the session's key before them if it was none.
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

    /// The lines in the answer to that, in the order of the keys.
    pub(super) fn queues_in(&self, answer: &TxnResponse) -> Option<Vec<Vec<Entry>>> {
        let ranges: Vec<_> = answer.responses.iter().filter_map(range_of).collect();
        let ranges = &ranges[ranges.len().checked_sub(self.queues.len())?..];
        let queues = self.queues.iter().zip(ranges);
        Some(queues.map(|(queue, range)| names::entries(queue, range.kvs.clone())).collect())
    }

    /// The entries that it has in these lines, in this session: one for each if it entered.
    pub(super) fn ours(&self, session: &Session, queues: &[Vec<Entry>]) -> Vec<Entry> {
        let queues = self.ids(session).zip(queues);
        let ours = queues.filter_map(|(id, queue)| queue.iter().find(|entry| *entry.id == *id));
        ours.cloned().collect()
    }
}

/// At which revision the session's key was written last, by the answer to a request that had no
/// effect; none if it is gone.
pub(super) fn key_revision_in(answer: &TxnResponse) -> Option<i64> {
    let first = answer.responses.first().and_then(range_of)?;
    first.kvs.first().map(|kv| kv.mod_revision)
}

/// Whether each of these is still there; if not, which are.
pub(super) fn confirm(session_key: &str, entries: &[(&Entry, usize)]) -> TxnRequest {
    let there = entries.iter().map(|(entry, _)| there(entry));
    let looks = entries.iter().map(|(entry, _)| op(Op::Range(single_key(&entry.id))));
    TxnRequest {
        compare: there.collect(),
        success: vec![op(Op::Range(single_key(session_key)))],
        failure: looks.collect(),
    }
}

/// For each of them, in order, whether it was there, by the answer to [`confirm`].
pub(super) fn confirmed(entries: &[(&Entry, usize)], answer: &TxnResponse) -> Vec<bool> {
    if answer.succeeded {
        return vec![true; entries.len()];
    }
    let looks = answer.responses.iter().map(range_of);
    let found = entries.iter().zip(looks).map(|((entry, _), look)| {
        let kv = look.and_then(|range| range.kvs.first());
        kv.is_some_and(|kv| u64::try_from(kv.create_revision) == Ok(entry.sequence))
    });
    found.collect()
}

/// Removes each of these that is still the one which was made then.
pub(super) fn leave(entries: &[(&Entry, usize)]) -> TxnRequest {
    let removals = entries.iter().map(|(entry, _)| {
        let removal = op(Op::Delete(DeleteRangeRequest { key: entry.id.as_bytes().into() }));
        let (compare, success) = (vec![there(entry)], vec![removal]);
        op(Op::Txn(TxnRequest { compare, success, failure: Vec::new() }))
    });
    let (compare, failure) = Default::default();
    TxnRequest { compare, success: removals.collect(), failure }
}

/// For each of them, in order, whether it was removed, by the answer to [`leave`].
pub(super) fn left(answer: &TxnResponse) -> impl Iterator<Item = bool> {
    let removed = |op: &_| matches!(op, Some(Answer::Txn(answer)) if answer.succeeded);
    answer.responses.iter().map(move |op| removed(&op.answer))
}

/// Writes the session's key in its name: for the first time, or again if it is still there.
pub(super) fn write_session_key(key: &str, lease: i64, at: i64) -> TxnRequest {
    let (key_itself, value) = (key.into(), Vec::new());
    TxnRequest {
        compare: vec![equal(key, Compared::ModRevision(at))],
        success: vec![op(Op::Put(PutRequest { key: key_itself, value, lease }))],
        failure: vec![op(Op::Range(single_key(key)))],
    }
}

/// All of a line.
pub(super) fn queue_range(queue: &str) -> RangeRequest {
    let (key, range_end) = (queue.into(), names::range_end_of(queue));
    RangeRequest { key, range_end, limit: 0, keys_only: true }
}

/// One key, without its value.
pub(super) fn single_key(key: &str) -> RangeRequest {
    RangeRequest { key: key.into(), range_end: Vec::new(), limit: 0, keys_only: true }
}

/// So many at most from `first` on, of all that begins with `start`, and what they say.
pub(super) fn page(first: Vec<u8>, start: &str, limit: i64) -> RangeRequest {
    // One zero byte is the end of all keys.
    let range_end = if start.is_empty() { vec![0] } else { names::range_end_of(start) };
    // No key is empty.
    let key = if first.is_empty() { vec![0] } else { first };
    RangeRequest { key, range_end, limit, keys_only: false }
}

fn there(entry: &Entry) -> Compare {
    // Places are revisions, which are read from an `i64`.
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
    match &op.answer {
        Some(Answer::Range(range)) => Some(range),
        _ => None,
    }
}
