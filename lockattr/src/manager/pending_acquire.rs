//! A claim on its way to the store and back, and what to undo if its caller gives up.
//!
//! `acquire.rs` sends its requests, `contended.rs` waits with it.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::local_queue::LocalQueue;
use crate::Holder;
use crate::hold::last_known::{Head, LastKnown};
use crate::lock::options::ResolvedOptions;
use crate::store::{AcquireRequest, AnyStore, Claim, ReleaseRequest, StoreError, Subscription};

/// The least time for a request near the deadline; with less, no answer could arrive in time.
pub(super) const MIN_RESPONSE_TIME: Duration = Duration::from_millis(250);

/// Why an attempt did not acquire the lock.
pub(super) enum Refusal {
    Held {
        holder: Option<Box<Holder>>,
        /// When to send the next request, if the claim is in the store's wait queue.
        queued: Option<Duration>,
    },
    Unknown(StoreError),
}

impl Refusal {
    /// Whether the claim waits in the store's queue now.
    pub(super) fn is_queued(&self) -> bool {
        matches!(self, Self::Held { queued: Some(_), .. })
    }

    pub(super) fn known(&self) -> LastKnown {
        match self {
            Self::Held { holder, .. } => LastKnown::HeldElsewhere(holder.clone()),
            Self::Unknown(error) => LastKnown::Unanswered(error.clone()),
        }
    }
}

/// How the store granted a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantedBy {
    Request,
    /// A request as the companion of another claim of this process, which also held the lock.
    CompanionRequest,
    /// A hand-off to the claim, which was the head of the store's queue.
    Notification,
}

/// A claim whose acquisition is under way. Dropping it at any await point releases what the store
/// may have granted without an answer, and leaves the store's wait queue.
pub(super) struct PendingAcquire<'a> {
    pub(super) shared: &'a Shared,
    pub(super) options: &'a ResolvedOptions,
    pub(super) claim: Arc<Claim>,
    /// The head of the queue of this process, unless this claim sends requests independently of it.
    pub(super) head: Option<Head>,
    pub(super) queue: Option<&'a LocalQueue<'a>>,
    /// The claim of this process that this one is a companion of.
    pub(super) companion: Option<Arc<Claim>>,
    /// Receives the store's notifications, once the claim may wait in the store's queue.
    pub(super) subscription: Option<Subscription>,
    /// Whether a request is under way. If it is dropped before it leaves this process, it is never
    /// sent.
    pub(super) is_asking: bool,
    /// Whether a request got no answer, or the claim is in the store's queue. Never reset by a
    /// refusal: a request without an answer may still arrive after it.
    pub(super) must_undo: bool,
    /// Whether a request got no answer: it may still arrive, and queue a claim that holds its lock
    /// by then.
    pub(super) unanswered: bool,
}

impl<'a> PendingAcquire<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        claim: Claim,
        options: &'a ResolvedOptions,
        head: Option<Head>,
        queue: Option<&'a LocalQueue<'a>>,
    ) -> Self {
        shared.core.watchdog.begin_acquire();
        Self {
            companion: None,
            shared,
            options,
            claim: Arc::new(claim),
            head,
            queue,
            subscription: None,
            is_asking: false,
            must_undo: false,
            unanswered: false,
        }
    }

    /// The same claim, as the companion of this one while that holds the lock.
    pub(super) fn companion(mut self, companion: Option<Arc<Claim>>) -> Self {
        self.companion = companion;
        self
    }

    pub(super) fn request(&self) -> AcquireRequest {
        AcquireRequest::new(self.claim.clone(), self.options.ttl).companion(self.companion.clone())
    }
}

impl Drop for PendingAcquire<'_> {
    fn drop(&mut self) {
        self.must_undo |= self.is_asking && self.claim.departed_at().is_some();
        if self.must_undo {
            let lock = ReleaseRequest::new(self.claim.clone());
            self.shared.core.watchdog.undo(lock, self.options.ttl);
        }
        self.shared.core.watchdog.end_acquire();
    }
}

pub(super) fn too_late(store: &AnyStore) -> StoreError {
    StoreError::new(format!("{} did not answer before `wait` ended", place_of(store)))
}

pub(super) fn not_sent(store: &AnyStore) -> StoreError {
    let place = place_of(store);
    StoreError::new(format!(
        "the request was not sent to {place} before `wait` ended: too many others of this process \
         come first, or there is no connection yet; wait longer, or ask for fewer locks at once"
    ))
    .not_sent()
}

fn place_of(store: &AnyStore) -> String {
    store.address().unwrap_or_else(|| "the store".to_owned())
}

pub(super) fn lapsed(ttl: Duration) -> StoreError {
    StoreError::new(format!(
        "its answer took longer than the whole lease: make `ttl` longer than {ttl:?}"
    ))
}
