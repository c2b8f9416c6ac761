//! The operations that an engine provides so that its locks are queues of entries.

use std::fmt::Debug;
use std::time::Duration;

use super::{Permit, StoreThread};
use crate::store::{Claim, LockKey, OwnerToken, Sharing, StoreError};

/// Servers that agree on the order in which entries were made, and drop them with the session that
/// made them.
///
/// A lock is a queue of entries under its name. Whose turn it is follows from the queue: no process
/// grants. One session, kept alive by the ensemble's own client, carries all entries of a store.
/// When the servers end it, all its entries go at once, and the locks with them.
pub(crate) trait LockRecipe: Debug + Send + Sync + 'static {
    /// Returns once a request can be sent: there is a session, and a connection. The permit bounds how many callers
    /// that have given up still open one.
    fn ready(&self, permit: Permit) -> impl Future<Output = Result<Permit, StoreError>> + Send;

    /// Makes an entry at the end of the queue of each key, all in one step or none, in the current
    /// session or a new one. Also reads those queues, as they were at that moment or later.
    ///
    /// `again`: the claim asked before, with an unknown outcome. An entry of the same token and
    /// session is then found, and not made a second time. An entry of another session is never
    /// taken for this claim's (CURATOR-604).
    ///
    /// Keeps `permit` until the servers have answered, even if this future is dropped.
    fn enter(
        &self,
        entry: &NewEntry<'_>,
        again: bool,
        permit: Permit,
    ) -> impl Future<Output = Result<Entered, StoreError>> + Send;

    /// Returns the queue under this key's name, head first.
    fn queue(&self, key: &LockKey) -> impl Future<Output = Result<Vec<Entry>, StoreError>> + Send;

    /// The same, read after the request was sent: it includes what any server changed before.
    fn latest_queue(
        &self,
        key: &LockKey,
    ) -> impl Future<Output = Result<Vec<Entry>, StoreError>> + Send;

    /// Returns the queues under all names that begin with `prefix`, read after the request was
    /// sent.
    fn queues(&self, prefix: &str) -> impl Future<Output = Result<LockQueues, StoreError>> + Send;

    /// Returns what was written when this entry was made; `None` if it is gone.
    fn value(
        &self,
        key: &LockKey,
        entry: &Entry,
    ) -> impl Future<Output = Result<Option<EntryValue>, StoreError>> + Send;

    /// Returns once this entry is gone, or that cannot be known any more: at once, if it is gone
    /// already. Costs the servers one watch, which is cancelled if this future is dropped. Keeps
    /// `permit` until the watch is set.
    fn wait_until_gone(
        &self,
        key: &LockKey,
        entry: &Entry,
        permit: Permit,
    ) -> impl Future<Output = ()> + Send;

    /// Returns once anything was added to this queue after it was read as `seen`, or that cannot be
    /// known. Keeps `permit` until the watch is set.
    fn wait_until_grown(
        &self,
        key: &LockKey,
        seen: &[Entry],
        permit: Permit,
    ) -> impl Future<Output = ()> + Send;

    /// Whether the entries of each of these claims are all still there, as a majority of the
    /// servers states *after* the request was sent. One result for each, in order. The session does
    /// not end sooner than [`max_ttl`](Self::max_ttl) after the request was sent.
    fn confirm(
        &self,
        held: &[ClaimEntries<'_>],
    ) -> impl Future<Output = Vec<Result<bool, StoreError>>> + Send;

    /// Removes the entries of each of these claims. Returns whether they were there, one result for
    /// each, in order. Keeps `permit` until the servers have answered.
    fn leave(
        &self,
        held: &[ClaimEntries<'_>],
        permit: Permit,
    ) -> impl Future<Output = Vec<Result<bool, StoreError>>> + Send;

    /// Returns once this session is over, for certain or because it could not be kept alive: as
    /// early as this process knows, and not later than the servers drop its entries.
    fn wait_until_ended(&self, session: u64) -> impl Future<Output = ()> + Send;

    /// How long the session certainly lives after a request that was answered, whatever happens:
    /// the longest lease.
    fn max_ttl(&self) -> Duration;

    /// Why the servers would not accept the entries of this claim, if so.
    fn refuses(&self, _claim: &Claim) -> Option<String> {
        None
    }

    /// Returns what `until` returns, or an error if the servers reply to nothing for
    /// `response_timeout` meanwhile.
    fn unless_silent<T: Send>(
        &self,
        until: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Checks that a majority of the servers replies.
    fn ping(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The thread of its connections and of the store's own tasks. It is not a runtime of a caller,
    /// because the session must not end with one.
    fn thread(&self) -> &StoreThread;
}

/// An entry to make for one claim, in the queue of each of its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEntry<'a> {
    pub(crate) keys: &'a [LockKey],
    pub(crate) token: OwnerToken,
    pub(crate) sharing: Sharing,
    /// Token and label, as `holder()` reads them.
    pub(crate) value: &'a str,
}

/// The entries that [`LockRecipe::enter`] made or found.
#[derive(Clone, Debug)]
pub(crate) struct Entered {
    /// The session that carries them.
    pub(crate) session: u64,
    /// Greater than the number of every earlier entry: the counter of a fencing token.
    pub(crate) counter: u64,
    /// The queue of each key, in the order of the keys, head first.
    pub(crate) queues: Vec<Vec<Entry>>,
}

/// An entry in the queue of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its order in this queue.
    pub(crate) sequence: u64,
    pub(crate) token: OwnerToken,
    pub(crate) sharing: Sharing,
    /// Whether its claim has entries in other queues too. The claim holds its locks only when it
    /// has its turn in each of them.
    pub(crate) several: bool,
    /// The engine's own name for it.
    pub(crate) id: Box<str>,
}

/// The text of an entry, and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryValue {
    /// [`NewEntry::value`].
    pub(crate) value: String,
    /// [`Entered::counter`].
    pub(crate) counter: u64,
}

/// The queues under a prefix.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockQueues {
    pub(crate) queues: Vec<LockQueue>,
    /// How many names under the prefix no key can have.
    pub(crate) left_out: u64,
}

/// The queue of one lock.
#[derive(Clone, Debug)]
pub(crate) struct LockQueue {
    pub(crate) key: LockKey,
    /// Head first.
    pub(crate) entries: Vec<Entry>,
    /// The texts of entries by their [ids](Entry::id), where they were read with the queue.
    pub(crate) written: Vec<(Box<str>, EntryValue)>,
}

/// The entries of one claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimEntries<'a> {
    pub(crate) keys: &'a [LockKey],
    pub(crate) token: OwnerToken,
    /// Zero if it is unknown.
    pub(crate) session: u64,
    /// The entry in the queue of each key; empty if the outcome of the request is unknown. It then
    /// means the entries that carry this token, including one that is still on its way in the
    /// current session. Only [`leave`](LockRecipe::leave) is called so.
    pub(crate) entries: &'a [Entry],
}
