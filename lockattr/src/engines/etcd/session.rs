//! The lease that all entries of a store belong to, and how long it certainly lives.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::entry_names::EntryNames;
use super::messages::{Header, LeaseKeepAliveResponse, RangeResponse};
use super::names;
use crate::platform::sync::Mutex;

/// A lease, and the session's key, which belongs to it.
///
/// The key has two uses. It is removed with the lease, in the same revision as all entries, so one
/// watch reports the end. And each entry is made on the condition that the key was not written
/// since: writing it again stops every request that is still on its way.
pub(super) struct Session {
    pub(super) lease: i64,
    pub(super) key: String,
    pub(super) names: EntryNames,
    /// The revision at which the key was last written.
    key_revision: AtomicI64,
    /// How many requests have an unknown outcome, and how many of them can no longer take effect.
    lost: AtomicU64,
    fenced: AtomicU64,
    alive_until: Mutex<Instant>,
    over: watch::Sender<bool>,
    /// One task at a time proves that the session lives, or writes its key again.
    pub(super) proving: tokio::sync::Mutex<Option<Instant>>,
    pub(super) fencing: tokio::sync::Mutex<()>,
}

impl Session {
    pub(super) fn new(lease: i64, key_revision: i64, alive_until: Instant) -> Self {
        Self {
            lease,
            key: names::session(lease),
            names: EntryNames::default(),
            key_revision: key_revision.into(),
            lost: 0.into(),
            fenced: 0.into(),
            alive_until: alive_until.into(),
            over: watch::Sender::new(false),
            proving: tokio::sync::Mutex::default(),
            fencing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn key_revision(&self) -> i64 {
        self.key_revision.load(Ordering::Acquire)
    }

    pub(super) fn set_key_revision(&self, revision: i64) {
        self.key_revision.fetch_max(revision, Ordering::AcqRel);
    }

    /// Notes that a request to make entries has an unknown outcome.
    pub(super) fn note_lost_request(&self) {
        self.lost.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the number of such requests, if one of them may still take effect.
    pub(super) fn lost_to_fence(&self) -> Option<u64> {
        let lost = self.lost.load(Ordering::Acquire);
        (self.fenced.load(Ordering::Acquire) < lost).then_some(lost)
    }

    /// Notes that the key was written after `lost` such requests.
    pub(super) fn note_fenced(&self, lost: u64) {
        self.fenced.fetch_max(lost, Ordering::AcqRel);
    }

    /// The session does not end before this.
    pub(super) fn alive_until(&self) -> Instant {
        *self.alive_until.lock()
    }

    pub(super) fn proved(&self, until: Instant) {
        let mut alive_until = self.alive_until.lock();
        *alive_until = until.max(*alive_until);
    }

    pub(super) fn end(&self) {
        self.over.send_replace(true);
    }

    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow() || Instant::now() >= self.alive_until()
    }

    pub(super) async fn ended(&self) {
        let mut over = self.over.subscribe();
        // The sender lives in `self`, so this cannot fail.
        drop(over.wait_for(|over| *over).await);
    }
}

/// How long a lease lives, and how long it is trusted.
///
/// A lease is proved in two steps, one after the other. First the session's key is read,
/// linearizably; then the lease is kept alive, by a member that knows the term of that read or a
/// later one. The member that replies to the read has heard from a majority since the request was
/// sent, and has applied a change of the leader's term. The member that keeps the lease alive is the
/// same one, unless a `grpc-proxy` is in between, and reports the term that it knew before. So the
/// keep-alive is answered by the member that led at the time of the read, or by a later leader. Each
/// leader keeps a lease for its whole TTL from the last keep-alive there, or from when it began to
/// lead plus an election timeout (`lessor.Promote`). If the leader was deposed between the read and
/// its reply, its successor began to count after the read. So the lease lives for its TTL from when
/// the request was sent, whichever member leads.
///
/// A keep-alive alone proves nothing: a leader that was deposed while it was paused, and does not
/// know it, replies as if it led (etcd before 3.4.31 and 3.5.13: issue 15247).
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseTiming(pub(super) Duration);

impl LeaseTiming {
    /// How long a lease lives after it was requested or proved, by this process's clock, which may
    /// differ from the servers' by 2 %.
    pub(super) fn lifetime(self) -> Duration {
        self.0 - self.0 / 50
    }

    /// Whether the reply to a keep-alive after this read proves that the lease has its whole TTL again.
    /// A `grpc-proxy` that gets no reply from the servers replies with what is left of it.
    pub(super) fn is_renewed(self, read: &RangeResponse, kept: &LeaseKeepAliveResponse) -> bool {
        let term = |header: &Option<Header>| header.as_ref().map_or(0, |header| header.raft_term);
        let is_whole = u64::try_from(kept.ttl).is_ok_and(|ttl| ttl >= self.0.as_secs());
        is_whole && term(&kept.header) >= term(&read.header)
    }

    /// How often the lease is proved.
    pub(super) fn prove_every(self) -> Duration {
        self.0 / 4
    }

    /// How long the lease certainly lives after any request that was answered: the last proof may
    /// be one interval old, and one may fail.
    pub(super) fn max_ttl(self) -> Duration {
        self.0 * 5 / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: either condition in `is_renewed`.
    #[test]
    fn a_lease_is_renewed_if_it_has_its_whole_ttl_from_a_member_that_knows_the_term() {
        let header = |raft_term| Some(Header { raft_term, ..Header::default() });
        let read = RangeResponse { header: header(7), ..RangeResponse::default() };
        let kept = |ttl, term| LeaseKeepAliveResponse { header: header(term), ttl };
        let is_renewed = |kept| LeaseTiming(Duration::from_secs(20)).is_renewed(&read, &kept);
        assert!(is_renewed(kept(20, 7)) && is_renewed(kept(21, 8)));
        assert!(!is_renewed(kept(19, 7)), "what is left of it");
        assert!(!is_renewed(kept(20, 6)), "a member that does not know the leader");
        assert!(!is_renewed(LeaseKeepAliveResponse { header: None, ttl: 20 }));
    }
}
