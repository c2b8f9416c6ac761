//! One entry into a hold, and the turn by which a nested one was let in.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::select_all;
use tokio::time::Instant;

use crate::hold::core::Core;
use crate::hold::gate::Gate;
use crate::lease::LeaseState;
use crate::lock::site::Site;
use crate::store::Sharing;
use crate::{Error, Lease, LostReason};

/// One entry into a hold: the acquisition itself, or a nested call inside it.
#[derive(Debug)]
pub(crate) struct Frame {
    of: FrameKind,
    /// 1 for the acquisition, 2 for a call nested in it, and so on.
    pub(crate) depth: u32,
    /// What this entry asked for, which may be less than what the hold has.
    pub(crate) sharing: Sharing,
    gate: Gate,
    /// Of several keys, the entries into the holds that this call chain had already.
    siblings: OnceLock<Vec<Arc<Frame>>>,
    /// When the body of an acquisition began: so many nanoseconds after its hold was asked for, and one.
    /// Zero before.
    began: AtomicU64,
}

/// What is entered.
#[derive(Debug)]
enum FrameKind {
    /// A lock. The core also tells which manager the hold is of.
    Lock { hold: Arc<LeaseState>, core: Arc<Core>, site: OnceLock<Site> },
    /// The entry around a nested call, whose gate let it in. Its turn lasts as long as somebody is inside:
    /// its guard, or a call further inside.
    Entry { around: Arc<Frame>, inside: AtomicUsize, site: Option<Site> },
}

impl Frame {
    fn new(of: FrameKind, depth: u32, sharing: Sharing) -> Self {
        let (siblings, began) = (OnceLock::new(), AtomicU64::new(0));
        Self { of, depth, sharing, gate: Gate::new(), siblings, began }
    }

    /// The first entry into a hold.
    pub(crate) fn first(hold: Arc<LeaseState>, core: Arc<Core>) -> Self {
        let sharing = hold.sharing();
        Self::new(FrameKind::Lock { hold, core, site: OnceLock::new() }, 1, sharing)
    }

    /// The hold, and what watches it. Nested entries look it up, because a count of them would be written
    /// by every nested call.
    fn lock(&self) -> (&Arc<LeaseState>, &Arc<Core>) {
        let mut entry = self;
        loop {
            match &entry.of {
                FrameKind::Lock { hold, core, .. } => return (hold, core),
                FrameKind::Entry { around, .. } => entry = around,
            }
        }
    }

    pub(crate) fn hold(&self) -> &Arc<LeaseState> {
        self.lock().0
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.lock().1
    }

    /// Of several keys, those whose holds were entered again for the same call.
    pub(crate) fn join(&self, others: impl Iterator<Item = Arc<Self>>) {
        self.siblings.get_or_init(|| others.collect());
    }

    /// What kind of lock an acquisition asked for; the first word stands.
    pub(crate) fn set_site(&self, is_at: Site) {
        if let FrameKind::Lock { site, .. } = &self.of {
            site.get_or_init(|| is_at);
        }
    }

    /// What kind of lock was asked for, where the options said.
    pub(crate) fn site(&self) -> Option<Site> {
        match &self.of {
            FrameKind::Lock { site, .. } => site.get().copied(),
            FrameKind::Entry { site, .. } => *site,
        }
    }

    /// The body of an acquisition begins: for a guard, the code of who got it. The first time stands.
    pub(crate) fn begins(&self, now: Instant) {
        let FrameKind::Lock { hold, .. } = &self.of else { return };
        if self.began.load(Ordering::Acquire) == 0 {
            let after = now.saturating_duration_since(hold.asked()).as_nanos();
            let after = u64::try_from(after).unwrap_or(u64::MAX).saturating_add(1);
            // If another was first, its time stands.
            let _first = self.began.compare_exchange(0, after, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// When the body of an acquisition began, if it has.
    pub(crate) fn began(&self) -> Option<Instant> {
        let after = self.began.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.hold().asked() + Duration::from_nanos(after))
    }

    /// Waits for this entry's turn to let a child in; none if no caller can be inside of it any more.
    pub(crate) async fn turn(
        self: Arc<Self>,
        sharing: Sharing,
        site: Option<Site>,
    ) -> Option<Reentry> {
        self.gate.enter(sharing).await;
        self.let_in(sharing, site)
    }

    /// The turn, if no caller has it.
    pub(crate) fn try_turn(
        self: Arc<Self>,
        sharing: Sharing,
        site: Option<Site>,
    ) -> Option<Reentry> {
        if self.gate.try_enter(sharing) { self.let_in(sharing, site) } else { None }
    }

    /// A child has passed the gate.
    fn let_in(self: Arc<Self>, sharing: Sharing, site: Option<Site>) -> Option<Reentry> {
        if !self.one_more_inside() {
            self.gate.leave(sharing);
            return None;
        }
        let depth = self.depth + 1;
        let of = FrameKind::Entry { around: self, inside: AtomicUsize::new(1), site };
        Some(Reentry(Lease::new(Arc::new(Self::new(of, depth, sharing)))))
    }

    /// Keeps the turn of a nested call for one more who is inside; false if it is over.
    fn one_more_inside(&self) -> bool {
        let FrameKind::Entry { inside, .. } = &self.of else { return true };
        let more = |inside: usize| (inside > 0).then_some(inside + 1);
        inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// One is inside no more. The last gives the turn back: the next child of the entry around has it, and
    /// there, too, is one less inside.
    fn one_less_inside(&self) {
        let mut entry = self;
        while let FrameKind::Entry { around, inside, .. } = &entry.of
            && inside.fetch_sub(1, Ordering::AcqRel) == 1
        {
            around.gate.leave(entry.sharing);
            entry = around;
        }
    }

    /// Whether the nested call whose entry this is has returned, and no caller is inside of it.
    pub(crate) fn is_over(&self) -> bool {
        match &self.of {
            FrameKind::Lock { .. } => false,
            FrameKind::Entry { inside, .. } => inside.load(Ordering::Acquire) == 0,
        }
    }

    /// The holds that the call asked for: this entry's, and those beside it.
    fn holds(&self) -> impl Iterator<Item = &Arc<LeaseState>> {
        let beside = self.siblings.get().into_iter().flatten();
        std::iter::once(self.hold()).chain(beside.map(|entry| entry.hold()))
    }

    /// An error, unless all that the call asked for is held.
    pub(crate) fn ensure_held(&self, now: Instant) -> Result<(), Error> {
        match self.siblings.get() {
            None => self.hold().ensure_held(now)?,
            Some(_) => self.holds().try_for_each(|hold| hold.ensure_held(now))?,
        }
        match self.is_over() {
            true => Err(self.hold().lost(LostReason::Released)),
            false => Ok(()),
        }
    }

    /// The earliest end of what the call asked for, if nothing is renewed.
    pub(crate) fn valid_until(&self) -> Instant {
        let ends = self.holds().map(|hold| hold.valid_until());
        ends.min().unwrap_or_else(|| self.hold().valid_until())
    }

    /// Waits until one of the holds that the call asked for has ended.
    pub(crate) async fn ended(self: Arc<Self>) -> Error {
        let ended = async |hold: Arc<LeaseState>| hold.lost(hold.clone().ended().await);
        if self.siblings.get().is_none() {
            return ended(self.hold().clone()).await;
        }
        select_all(self.holds().map(|hold| Box::pin(ended(hold.clone())))).await.0
    }
}

/// The turn of a nested call to be inside the entry around it. Once it is dropped, the next child has the
/// turn, when no caller is further inside: another child beside them would be a second holder.
#[derive(Debug)]
pub(crate) struct Reentry(Lease);

impl Reentry {
    /// The entry of the call whose turn it is.
    pub(crate) fn lease(&self) -> &Lease {
        &self.0
    }
}

impl Drop for Reentry {
    fn drop(&mut self) {
        self.0.frame().one_less_inside();
    }
}
