//! What an engine has to do so that its locks are lines of entries.

use std::fmt::Debug;
use std::time::Duration;

use tokio::time::Instant;

use super::StoreThread;
use crate::store::{Claim, LockKey, OwnerToken, Sharing, StoreError};

/// Servers that agree on the order in which entries were made, and drop them with the session that
/// made them.
///
/// A lock is a line of entries under its name, and whose turn it is can be read off the line: there
/// is no process that grants. One session, kept alive by the ensemble's own client, carries all entries of
/// a store; when the servers end it, all its entries go at once, and the locks with them.
pub(crate) trait LockRecipe: Debug + Send + Sync + 'static {
    /// Makes an entry at the end of the line of each key, all of them in one step or none, in the
    /// session that there is, or in a new one; and reads those lines, as they were at that moment or
    /// later.
    ///
    /// `again` if it was asked before and it is unknown what became of it: an entry of the same token
    /// and session is found then, and not made a second time. One of another session is never taken
    /// for ours (CURATOR-604).
    fn enter(
        &self,
        entry: &NewEntry<'_>,
        again: bool,
    ) -> impl Future<Output = Result<Entered, StoreError>> + Send;

    /// The line under this key's name, from its front.
    fn queue(&self, key: &LockKey) -> impl Future<Output = Result<Vec<Entry>, StoreError>> + Send;

    /// The same, as it is after this was asked: what any server changed before is in it.
    fn latest_queue(
        &self,
        key: &LockKey,
    ) -> impl Future<Output = Result<Vec<Entry>, StoreError>> + Send;

    /// The lines under all names that begin with this, as they are after this was asked.
    fn queues(
        &self,
        prefix: &str,
    ) -> impl Future<Output = Result<Vec<LockQueue>, StoreError>> + Send;

    /// What was written when this entry was made; none if it is gone.
    fn value(
        &self,
        key: &LockKey,
        entry: &Entry,
    ) -> impl Future<Output = Result<Option<EntryValue>, StoreError>> + Send;

    /// Returns once this entry is gone, or that cannot be known any more: at once, if it is already. Costs
    /// the servers one watch, which is taken back if this is dropped.
    fn gone(&self, key: &LockKey, entry: &Entry) -> impl Future<Output = ()> + Send;

    /// Returns once anything was added to this line since it was read as `seen`, or it cannot be known.
    fn grown(&self, key: &LockKey, seen: &[Entry]) -> impl Future<Output = ()> + Send;

    /// Whether the entries of each of these claims are all still there, one answer for each, in
    /// order: what a majority of the servers says *after* it was asked. The session does not end
    /// sooner than [`keeps_for`](Self::keeps_for) after the question was sent.
    fn confirm(
        &self,
        held: &[ClaimEntries<'_>],
    ) -> impl Future<Output = Vec<Result<bool, StoreError>>> + Send;

    /// Removes the entries of each of these claims; whether they were there, one answer for each, in
    /// order. The parents of entries are the ensemble's own to clean up.
    fn leave(
        &self,
        held: &[ClaimEntries<'_>],
    ) -> impl Future<Output = Vec<Result<bool, StoreError>>> + Send;

    /// Returns once this session is over, for certain or because no process could keep it: as early as
    /// that is known here, and not later than the servers drop its entries.
    fn ended(&self, session: u64) -> impl Future<Output = ()> + Send;

    /// For how long after a question that was answered the session certainly lives, whatever
    /// happens: the longest lease.
    fn keeps_for(&self) -> Duration;

    /// Why the servers would not take the entries of this claim, if so.
    fn refuses(&self, _claim: &Claim) -> Option<String> {
        None
    }

    /// Whether the servers have answered anything since then.
    fn answered_since(&self, since: Instant) -> bool;

    /// Whether a majority of the servers answers.
    fn ping(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Where its connections live, and what the store does by itself: not on a runtime of its
    /// callers, because the session must not end with one of them.
    fn thread(&self) -> &StoreThread;
}

/// An entry to be made for one claim, in the line of each of its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEntry<'a> {
    pub(crate) keys: &'a [LockKey],
    pub(crate) token: OwnerToken,
    pub(crate) sharing: Sharing,
    /// Token and label: what `holder()` reads.
    pub(crate) value: &'a str,
}

/// What [`LockRecipe::enter`] made or found.
#[derive(Clone, Debug)]
pub(crate) struct Entered {
    /// The session that carries it.
    pub(crate) session: u64,
    /// Greater than that of every entry made before: the counter of a fencing token.
    pub(crate) number: u64,
    /// The line of each key, in order of the keys, from its front.
    pub(crate) queues: Vec<Vec<Entry>>,
}

/// One place in the line of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its order in this line.
    pub(crate) sequence: u64,
    pub(crate) token: OwnerToken,
    pub(crate) sharing: Sharing,
    /// Whether its claim has entries in other lines too: then it holds its locks only when it is
    /// its turn in each of them.
    pub(crate) several: bool,
    /// The engine's own name for it.
    pub(crate) id: Box<str>,
}

/// What an entry says, and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryValue {
    /// [`NewEntry::value`].
    pub(crate) value: String,
    /// [`Entered::number`].
    pub(crate) number: u64,
}

/// The line of one lock.
#[derive(Clone, Debug)]
pub(crate) struct LockQueue {
    pub(crate) key: LockKey,
    /// From its front.
    pub(crate) entries: Vec<Entry>,
    /// What entries say, by their [ids](Entry::id), where that was read with the line.
    pub(crate) written: Vec<(Box<str>, EntryValue)>,
}

/// The entries of one claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimEntries<'a> {
    pub(crate) keys: &'a [LockKey],
    pub(crate) token: OwnerToken,
    /// Zero if it is not known.
    pub(crate) session: u64,
    /// The entry in the line of each key; empty if it is unknown what became of the question: then
    /// those are meant that carry this token, also one that is still on its way in the session that
    /// there is now. Only [`leave`](LockRecipe::leave) is asked so.
    pub(crate) entries: &'a [Entry],
}
