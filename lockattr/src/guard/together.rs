//! Readers of one process that have a lock together, under the lease of the writer that let them in.
//!
//! The process had the lock alone, and nobody else was granted it since. So a number of the same lease is
//! still greater than all that were given for this lock, whoever got them. Readers are let in as long as no
//! caller of this process waits before them and no other process waits. The last one out has the lease
//! itself, and hands it on or gives it back.
//!
//! The lease stays exclusive for a moment, and only while a writer of this process waits: readers of other
//! processes would come after that one in any case. Then it becomes [a shared one](Together::share), nobody gets
//! in here any more, and the writer waits in the store's queue.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::LockGuard;
use super::held::Held;
use super::way::Way;
use crate::FencingToken;
use crate::chain::Frame;
use crate::fencing::Numbers;
use crate::hold::{Hold, validity};
use crate::line::Next;
use crate::manager::{Ahead, Front, Known};
use crate::options::Terms;
use crate::store::Sharing;
use crate::watchdog::Watchdog;

/// So long readers have a lease together that is exclusive in the store. Most have let go of it by then.
const EXCLUSIVE_FOR: Duration = Duration::from_millis(20);

/// Readers that have a lock together.
pub(crate) struct Together {
    /// The hold of the lease, which is renewed for all of them and lost for all of them.
    lease: Arc<Hold>,
    began: Instant,
    watchdog: Arc<Watchdog>,
    /// The watchdog's number of the lease.
    id: u64,
    front: Front,
    numbers: Numbers,
    /// How many are inside. Once nobody is, nobody gets in any more.
    inside: AtomicUsize,
    /// The lease itself, for the last one out.
    held: Mutex<Option<Box<Held>>>,
}

impl Together {
    /// The lock becomes that of readers: the first of them wants it on these terms.
    pub(super) fn begin(
        held: Box<Held>,
        terms: &Terms,
        ahead: Ahead,
        now: Instant,
    ) -> (Arc<Self>, LockGuard) {
        let last = held.last;
        let mut held = held.next_hold(last, terms.ttl, None, now);
        let readers = Arc::new(Self {
            lease: held.frame.hold().clone(),
            began: now,
            watchdog: held.frame.watchdog().clone(),
            id: held.id,
            front: ahead.front(),
            numbers: Numbers::after(last),
            inside: AtomicUsize::new(1),
            held: Mutex::default(),
        });
        // It fits, so there is a number left.
        let fencing = readers.numbers.next().unwrap_or(last);
        let guard = readers.member(fencing, now);
        // From here on others may look, none of whom is the last out, because the first is inside.
        let claim = held.claim().clone();
        ahead.shares(Known::Together(claim, Arc::downgrade(&readers)));
        held.way = Way::Next(ahead);
        *readers.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        (readers, guard)
    }

    /// The first is inside: lets those in that wait behind it and can have the lock too. Nothing if nobody is
    /// inside any more; the lease itself if all others have left meanwhile.
    pub(super) fn let_in_more(self: &Arc<Self>, now: Instant) -> Option<Box<Held>> {
        if !self.one_more() {
            return None;
        }
        self.let_in(now);
        if !self.a_writer_waits() {
            self.look_soon();
        }
        // Whatever becomes of that, and of the writer that waits: its task may never be polled again.
        if !self.looks_later() {
            self.share();
        }
        self.leave()
    }

    /// Looks whether a writer waits, when the one that has just let them in had time to come back.
    fn look_soon(self: &Arc<Self>) {
        let looks = LooksWhenDropped(self.clone());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                yield_now().await;
                drop(looks);
            });
        }
    }

    /// Looks again when the lease was exclusive for long enough; `false` if no writer can come any more.
    fn looks_later(&self) -> bool {
        let name = self.lease.claim().key().name();
        self.watchdog.looks_at_readers(name, self.began + EXCLUSIVE_FOR)
    }

    /// Who waited at the front may have given up: lets those in that wait now, and shares the lease if no writer
    /// is among them, or it was exclusive for long enough.
    pub(crate) fn look(self: &Arc<Self>, now: Instant) {
        // As one who is inside for the moment. It may be the last one out, and passes the lease on.
        if self.one_more() {
            let inside = self.member(self.numbers.last(), now);
            self.let_in(now);
            let is_over = now >= self.began + EXCLUSIVE_FOR;
            if !self.a_writer_waits() || is_over || !self.looks_later() {
                self.share();
            }
            drop(inside);
        }
    }

    fn a_writer_waits(&self) -> bool {
        self.front.any_waits(|terms| terms.sharing == Sharing::Exclusive)
    }

    /// Makes the lease a shared one, by one who is inside. Whoever comes here from now on asks the store.
    fn share(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let way = held.as_mut().map(|held| std::mem::take(&mut held.way));
        drop(held);
        if let Some(Way::Next(ahead)) = way {
            // First that: who gets in later has a number of this lease, and another process may have a greater
            // one by then.
            drop(ahead);
            self.lease.claim().share();
            self.watchdog.renew_now(self.id);
        }
    }

    /// Lets those in that wait at the front and can have the lock too, by one who is inside.
    fn let_in(self: &Arc<Self>, now: Instant) {
        loop {
            let mut fencing = None;
            let next = self.front.next(now, |terms| {
                fencing = self.fits(terms, now).then(|| self.numbers.next()).flatten();
                fencing.is_some()
            });
            let (Next::Hand(waiter), Some(fencing)) = (next, fencing) else { return };
            self.inside.fetch_add(1, Ordering::AcqRel);
            if let Err(gone) = waiter.hand(self.member(fencing, now)) {
                // Not the last one, because who lets it in is inside.
                let _not_last = gone.into_held();
            }
        }
    }

    /// One is inside no more. The last one out gets the lease itself.
    pub(super) fn leave(&self) -> Option<Box<Held>> {
        if self.inside.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        held.map(|mut held| {
            held.last = self.numbers.last();
            held
        })
    }

    fn one_more(&self) -> bool {
        let more = |inside: usize| (inside > 0).then_some(inside + 1);
        self.inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Whether who wants the lock on these terms can have it too: what is its own would have to be kept apart
    /// from the lease.
    fn fits(&self, terms: &Terms, now: Instant) -> bool {
        let left = self.lease.valid_until().saturating_duration_since(now);
        terms.sharing == Sharing::Shared
            && terms.renew
            && terms.max_hold.is_none()
            && terms.hold_at_least.is_none()
            && terms.ttl == self.lease.ttl()
            && left >= validity(terms.ttl) / 2
            && self.lease.check(now).is_ok()
    }

    /// The guard of one who is counted already.
    fn member(self: &Arc<Self>, fencing: FencingToken, now: Instant) -> LockGuard {
        let hold = Arc::new(Hold::together(&self.lease, fencing, now));
        let frame = Arc::new(Frame::first(hold, self.watchdog.clone()));
        let way = Way::Together(self.clone());
        Box::new(Held { id: self.id, frame, way, last: fencing, at_least: None }).into_guard()
    }
}

/// Looks, also where its runtime ends before.
struct LooksWhenDropped(Arc<Together>);

impl Drop for LooksWhenDropped {
    fn drop(&mut self) {
        self.0.look(Instant::now());
    }
}
