//! The lease on which all entries of a store hang, and how long it certainly lives.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::names;

/// One lease, and the key that is written in its name.
///
/// That key says two things. It goes with the lease, in the same revision as all entries, so that
/// one watch tells of the end. And each entry is made under the condition that it was not written
/// since: writing it again stops every question that is still on its way.
pub(super) struct Session {
    pub(super) lease: i64,
    pub(super) key: String,
    /// The revision at which its key was written last.
    mark: AtomicI64,
    /// How many questions have no known outcome, and how many of them cannot come true any
    /// more.
    lost: AtomicU64,
    stopped: AtomicU64,
    lives_until: Mutex<Instant>,
    over: watch::Sender<bool>,
    /// One at a time proves that it lives, or writes its key again.
    pub(super) proving: tokio::sync::Mutex<()>,
    pub(super) fencing: tokio::sync::Mutex<()>,
}

impl Session {
    pub(super) fn new(lease: i64, mark: i64, lives_until: Instant) -> Self {
        Self {
            lease,
            key: names::session(lease),
            mark: mark.into(),
            lost: 0.into(),
            stopped: 0.into(),
            lives_until: lives_until.into(),
            over: watch::Sender::new(false),
            proving: tokio::sync::Mutex::default(),
            fencing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn key_revision(&self) -> i64 {
        self.mark.load(Ordering::Acquire)
    }

    pub(super) fn set_key_revision(&self, revision: i64) {
        self.mark.fetch_max(revision, Ordering::AcqRel);
    }

    /// It is unknown what became of a question that makes an entry.
    pub(super) fn note_lost_request(&self) {
        self.lost.fetch_add(1, Ordering::AcqRel);
    }

    /// How many such questions there were, if one of them may come true still.
    pub(super) fn lost_to_fence(&self) -> Option<u64> {
        let lost = self.lost.load(Ordering::Acquire);
        (self.stopped.load(Ordering::Acquire) < lost).then_some(lost)
    }

    /// The key was written after this many.
    pub(super) fn note_fenced(&self, lost: u64) {
        self.stopped.fetch_max(lost, Ordering::AcqRel);
    }

    /// It does not end sooner.
    pub(super) fn lives_until(&self) -> Instant {
        *self.lives_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn proved(&self, until: Instant) {
        let mut lives_until = self.lives_until.lock().unwrap_or_else(PoisonError::into_inner);
        *lives_until = until.max(*lives_until);
    }

    pub(super) fn end(&self) {
        self.over.send_replace(true);
    }

    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow() || Instant::now() >= self.lives_until()
    }

    pub(super) async fn ended(&self) {
        let mut over = self.over.subscribe();
        // The sender is our own.
        drop(over.wait_for(|over| *over).await);
    }
}

/// How long a lease lives and is believed in.
///
/// A lease is proved in two steps, one after the other and over the same connection: the session's
/// key is read, linearizably, and then the lease is kept alive. The member that answers the read has
/// heard from a majority since it was asked, and has by then taken note of who leads; so the keep-alive
/// is answered by the member that led at the time of the read, or later. Each leader keeps a lease for its
/// whole TTL from the last time it was kept alive there, or from when it began to lead and an election
/// timeout more (`lessor.Promote`). If the leader was deposed between the read and its answer, its
/// successor's count began after the read. So the lease lives for its TTL from the question, the process that
/// leads.
///
/// A keep-alive alone proves nothing: one that was deposed while it stood still, and has not heard of
/// it, answers it as if it led (etcd before 3.4.31 and 3.5.13: issue 15247).
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseTiming(pub(super) Duration);

impl LeaseTiming {
    /// For how long after it was asked for, or proved, a lease lives by our clock, which may differ
    /// from the servers' by two in a hundred.
    pub(super) fn lifetime(self) -> Duration {
        self.0 - self.0 / 50
    }

    /// How often it is proved.
    pub(super) fn prove_every(self) -> Duration {
        self.0 / 4
    }

    /// For how long after any question that was answered it certainly lives: the last proof may be
    /// from a beat ago, and one may fail.
    pub(super) fn keeps_for(self) -> Duration {
        self.0 * 5 / 8
    }
}
