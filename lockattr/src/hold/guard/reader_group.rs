//! Readers of one process that hold a lock together, under the lease of the writer that let them
//! in.
//!
//! The process held the lock exclusively, and the store has granted it to no caller since. So the
//! next token of this lease is greater than every token given for this lock. A reader is let in
//! if no writer waits before it. While another process waits, the hand-off limits bound how many
//! readers get in. The last reader to leave owns the lease, and hands it off or releases it.
//!
//! The lease stays exclusive only while a writer of this process waits, and at most for [a short
//! time](MAX_EXCLUSIVE). Then it becomes [shared](ReaderGroup::share): no other caller gets in
//! under it, and the writer waits in the store's queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::LockGuard;
use super::destination::Destination;
use super::held::HeldLease;
use crate::FencingToken;
use crate::hold::chain::Frame;
use crate::hold::core::Core;
use crate::hold::last_known::{Head, LastKnown, SharedHead};
use crate::lease::{LeaseState, validity};
use crate::lock::fencing::TokenSequence;
use crate::lock::options::ResolvedOptions;
use crate::platform::sync::Mutex;
use crate::queue::Next;
use crate::store::Sharing;

/// The longest time that the readers' lease stays exclusive while a writer waits: the default of
/// `max_handoff_time`.
const MAX_EXCLUSIVE: Duration = Duration::from_millis(20);

pub(crate) struct ReaderGroup {
    /// The hold of the lease, which is renewed and lost for all of them.
    lease: Arc<LeaseState>,
    began: Instant,
    core: Arc<Core>,
    /// The watchdog's id of the lease.
    id: u64,
    head_view: SharedHead,
    tokens: TokenSequence,
    /// The number of readers inside. Once it is zero, no reader is admitted any more.
    inside: AtomicUsize,
    /// The lease itself, for the last reader to leave.
    held: Mutex<Option<Box<HeldLease>>>,
}

impl ReaderGroup {
    /// Turns a lease into one for readers. `options` are those of the first reader.
    pub(super) fn begin(
        held: Box<HeldLease>,
        options: &ResolvedOptions,
        head: Head,
        now: Instant,
    ) -> (Arc<Self>, LockGuard) {
        let last_token = held.last_token;
        let mut held = held.next_hold(last_token, options.ttl, None, now);
        let readers = Arc::new(Self {
            lease: held.frame.hold().clone(),
            began: now,
            core: held.frame.core().clone(),
            id: held.id,
            head_view: head.shared(),
            tokens: TokenSequence::after(last_token),
            inside: AtomicUsize::new(1),
            held: Mutex::default(),
        });
        // It fits, so a token is left.
        let fencing = readers.tokens.next().unwrap_or(last_token);
        let guard = readers.reader_guard(fencing, now);
        // From here on other readers may leave; none is the last, because the first one is inside.
        let claim = held.claim().clone();
        head.share(LastKnown::Readers(claim, Arc::downgrade(&readers)));
        held.destination = Destination::NextWaiter(head);
        *readers.held.lock() = Some(held);
        (readers, guard)
    }

    /// Called while the first reader is inside: lets in the waiting readers that can share the
    /// lock. Returns the lease if all other readers have left meanwhile.
    pub(super) fn admit_more(self: &Arc<Self>, now: Instant) -> Option<Box<HeldLease>> {
        if !self.enter() {
            return None;
        }
        self.admit(now);
        if !self.has_waiting_writer() {
            self.recheck_soon();
        }
        // Always, because neither the task of `recheck_soon` nor the writer's may ever be polled
        // again.
        if !self.recheck_later() {
            self.share();
        }
        self.leave()
    }

    /// Checks again after one yield. The writer that has just let the readers in may be waiting
    /// again by then.
    fn recheck_soon(self: &Arc<Self>) {
        let recheck = RecheckOnDrop(self.clone());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                yield_now().await;
                drop(recheck);
            });
        }
    }

    /// Checks again when the lease was exclusive for long enough; `false` if the manager is
    /// closing.
    fn recheck_later(&self) -> bool {
        let name = self.lease.claim().key().name();
        self.core.watchdog.recheck_readers_at(name, self.began + MAX_EXCLUSIVE)
    }

    /// Lets in the readers at the head, because a writer before them may have given up. Shares the
    /// lease if no writer waits, or if the lease was exclusive for long enough.
    pub(crate) fn recheck(self: &Arc<Self>, now: Instant) {
        // Counts as a reader meanwhile. If the others leave, it is the last one and passes the
        // lease on.
        if self.enter() {
            let inside = self.reader_guard(self.tokens.last_token(), now);
            self.admit(now);
            let is_due = now >= self.began + MAX_EXCLUSIVE;
            if !self.has_waiting_writer() || is_due || !self.recheck_later() {
                self.share();
            }
            drop(inside);
        }
    }

    fn has_waiting_writer(&self) -> bool {
        self.head_view.any_waits(|options| options.sharing == Sharing::Exclusive)
    }

    /// Makes the lease a shared one. The caller must be inside. Later callers acquire from the store.
    fn share(&self) {
        let mut held = self.held.lock();
        let destination = held.as_mut().map(|held| std::mem::take(&mut held.destination));
        drop(held);
        if let Some(Destination::NextWaiter(head)) = destination {
            // Give up the head first. Once the lock is shared, another process may get a greater
            // token than a reader that gets in here.
            drop(head);
            self.lease.claim().share();
            self.core.watchdog.renew_now(self.id);
        }
    }

    /// Lets in the waiters at the head that can share the lock. The caller must be inside.
    fn admit(self: &Arc<Self>, now: Instant) {
        loop {
            let mut fencing = None;
            let next = self.head_view.next(now, |options| {
                fencing = self.fits(options, now).then(|| self.tokens.next()).flatten();
                fencing.is_some()
            });
            let (Next::Waiter(waiter), Some(fencing)) = (next, fencing) else { return };
            self.inside.fetch_add(1, Ordering::AcqRel);
            if let Err(gone) = waiter.hand_off(self.reader_guard(fencing, now)) {
                // Not the last reader, because the caller of this function is inside.
                let _not_last = gone.into_held();
            }
        }
    }

    /// Counts one reader less. Returns the lease to the last one.
    pub(super) fn leave(&self) -> Option<Box<HeldLease>> {
        if self.inside.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let held = self.held.lock().take();
        held.map(|mut held| {
            held.last_token = self.tokens.last_token();
            held
        })
    }

    fn enter(&self) -> bool {
        let more = |inside: usize| (inside > 0).then_some(inside + 1);
        self.inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Whether a caller with these options can join. A caller with limits of its own cannot,
    /// because all readers have the limits of the one lease.
    fn fits(&self, options: &ResolvedOptions, now: Instant) -> bool {
        let remaining = self.lease.valid_until().saturating_duration_since(now);
        options.sharing == Sharing::Shared
            && options.renew
            && options.max_hold.is_none()
            && options.hold_at_least.is_none()
            && options.ttl == self.lease.ttl()
            && remaining >= validity(options.ttl) / 2
            && self.lease.check(now).is_ok()
    }

    /// The guard of a reader that is already counted.
    fn reader_guard(self: &Arc<Self>, fencing: FencingToken, now: Instant) -> LockGuard {
        let hold = Arc::new(LeaseState::reader_of(&self.lease, fencing, now));
        let frame = Arc::new(Frame::first(hold, self.core.clone()));
        let destination = Destination::Readers(self.clone());
        Box::new(HeldLease { id: self.id, frame, destination, last_token: fencing, at_least: None })
            .into_guard()
    }
}

/// Checks when it is dropped, so also if the runtime ends before the task runs.
struct RecheckOnDrop(Arc<ReaderGroup>);

impl Drop for RecheckOnDrop {
    fn drop(&mut self) {
        self.0.recheck(Instant::now());
    }
}
