//! One entry into a hold, and the permission that lets a nested call enter.

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
    kind: FrameKind,
    /// 1 for the acquisition, 2 for a call nested in it, and so on.
    pub(crate) depth: u32,
    /// The mode of this entry, which may be weaker than that of the hold.
    pub(crate) sharing: Sharing,
    gate: Gate,
    /// With several keys, the entries into the holds that this call chain already had.
    siblings: OnceLock<Vec<Arc<Frame>>>,
    /// When the body of an acquisition began, in nanoseconds after the request for its hold, plus
    /// one. Zero until then.
    began: AtomicU64,
}

#[derive(Debug)]
enum FrameKind {
    /// A lock. The core identifies the manager that the hold belongs to.
    Lock { hold: Arc<LeaseState>, core: Arc<Core>, site: OnceLock<Site> },
    /// The entry around a nested call, whose gate let the call in. The call keeps the gate while
    /// its guard exists or code runs further inside.
    Entry { around: Arc<Frame>, inside: AtomicUsize, site: Option<Site> },
}

impl Frame {
    fn new(kind: FrameKind, depth: u32, sharing: Sharing) -> Self {
        let (siblings, began) = (OnceLock::new(), AtomicU64::new(0));
        Self { kind, depth, sharing, gate: Gate::new(), siblings, began }
    }

    pub(crate) fn first(hold: Arc<LeaseState>, core: Arc<Core>) -> Self {
        let sharing = hold.sharing();
        Self::new(FrameKind::Lock { hold, core, site: OnceLock::new() }, 1, sharing)
    }

    /// The hold, and what watches it. Nested entries follow the chain to it: if each had its own
    /// `Arc`, every nested call would write to a shared reference count.
    fn lock(&self) -> (&Arc<LeaseState>, &Arc<Core>) {
        let mut entry = self;
        loop {
            match &entry.kind {
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

    /// With several keys, adds the entries that the same call re-entered.
    pub(crate) fn add_siblings(&self, others: impl Iterator<Item = Arc<Self>>) {
        self.siblings.get_or_init(|| others.collect());
    }

    /// Sets the site that the call named; only the first call counts.
    pub(crate) fn set_site(&self, location: Site) {
        if let FrameKind::Lock { site, .. } = &self.kind {
            site.get_or_init(|| location);
        }
    }

    /// The site of the lock, if the options named it.
    pub(crate) fn site(&self) -> Option<Site> {
        match &self.kind {
            FrameKind::Lock { site, .. } => site.get().copied(),
            FrameKind::Entry { site, .. } => *site,
        }
    }

    /// Records when the body of an acquisition begins (for a guard, the code that receives it).
    /// Only the first call counts.
    pub(crate) fn record_begin(&self, now: Instant) {
        let FrameKind::Lock { hold, .. } = &self.kind else { return };
        if self.began.load(Ordering::Acquire) == 0 {
            let after = now.saturating_duration_since(hold.requested_at()).as_nanos();
            let after = u64::try_from(after).unwrap_or(u64::MAX).saturating_add(1);
            // If another thread was first, its time stays.
            let _first = self.began.compare_exchange(0, after, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    pub(crate) fn began(&self) -> Option<Instant> {
        let after = self.began.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.hold().requested_at() + Duration::from_nanos(after))
    }

    /// Waits until this entry lets a child in; `None` if the call of this entry is over.
    pub(crate) async fn enter(
        self: Arc<Self>,
        sharing: Sharing,
        site: Option<Site>,
    ) -> Option<Reentry> {
        self.gate.enter(sharing).await;
        self.admit(sharing, site)
    }

    /// Lets a child in if the gate is free.
    pub(crate) fn try_enter(
        self: Arc<Self>,
        sharing: Sharing,
        site: Option<Site>,
    ) -> Option<Reentry> {
        if self.gate.try_enter(sharing) { self.admit(sharing, site) } else { None }
    }

    /// Makes the entry of a child that has passed the gate.
    fn admit(self: Arc<Self>, sharing: Sharing, site: Option<Site>) -> Option<Reentry> {
        if !self.add_inside() {
            self.gate.leave(sharing);
            return None;
        }
        let depth = self.depth + 1;
        let kind = FrameKind::Entry { around: self, inside: AtomicUsize::new(1), site };
        Some(Reentry(Lease::new(Arc::new(Self::new(kind, depth, sharing)))))
    }

    /// Counts one more user of a nested call's entry; `false` if the call is over.
    fn add_inside(&self) -> bool {
        let FrameKind::Entry { inside, .. } = &self.kind else { return true };
        let more = |inside: usize| (inside > 0).then_some(inside + 1);
        inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Counts one user less. The last one opens the gate of the entry around for its next child,
    /// and counts as one user less there too.
    fn remove_inside(&self) {
        let mut entry = self;
        while let FrameKind::Entry { around, inside, .. } = &entry.kind
            && inside.fetch_sub(1, Ordering::AcqRel) == 1
        {
            around.gate.leave(entry.sharing);
            entry = around;
        }
    }

    /// Whether the nested call of this entry has returned and no code is inside it.
    pub(crate) fn is_over(&self) -> bool {
        match &self.kind {
            FrameKind::Lock { .. } => false,
            FrameKind::Entry { inside, .. } => inside.load(Ordering::Acquire) == 0,
        }
    }

    /// The holds of the call: this entry's and its siblings'.
    fn holds(&self) -> impl Iterator<Item = &Arc<LeaseState>> {
        let siblings = self.siblings.get().into_iter().flatten();
        std::iter::once(self.hold()).chain(siblings.map(|entry| entry.hold()))
    }

    /// Returns an error unless every lock of the call is held.
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

    /// The earliest end of the leases of the call, if none is renewed.
    pub(crate) fn valid_until(&self) -> Instant {
        let ends = self.holds().map(|hold| hold.valid_until());
        ends.min().unwrap_or_else(|| self.hold().valid_until())
    }

    /// Waits until one of the holds of the call ends.
    pub(crate) async fn ended(self: Arc<Self>) -> Error {
        let ended = async |hold: Arc<LeaseState>| hold.lost(hold.clone().ended().await);
        if self.siblings.get().is_none() {
            return ended(self.hold().clone()).await;
        }
        select_all(self.holds().map(|hold| Box::pin(ended(hold.clone())))).await.0
    }
}

/// The permission of a nested call to be inside the entry around it. Once it is dropped and no code
/// is further inside, the next child enters: any earlier, that child would be a second holder.
#[derive(Debug)]
pub(crate) struct Reentry(Lease);

impl Reentry {
    pub(crate) fn lease(&self) -> &Lease {
        &self.0
    }
}

impl Drop for Reentry {
    fn drop(&mut self) {
        self.0.frame().remove_inside();
    }
}
