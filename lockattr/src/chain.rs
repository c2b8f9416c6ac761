//! The call chain: which holds the running code is inside of, and whose turn it is to enter again.
//!
//! Ownership belongs to the chain of calls, neither to the thread nor to the task. Each hold has a
//! gate that its direct children pass one at a time; a child's own children pass the child's gate.
//! So nested calls enter again, and two branches of a `join!` take turns. A child's turn lasts for as
//! long as anybody is inside of it, also a task that outlives it.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::select_all;
use tokio::task::futures::TaskLocalFuture;
use tokio::time::Instant;

use crate::default_manager;
use crate::gate::{self, Gate};
use crate::hold::Hold;
use crate::site::Site;
use crate::store::Sharing;
use crate::watchdog::Watchdog;
use crate::{Error, Lease, LostReason};

tokio::task_local! {
    static INNERMOST: Option<Arc<Inside>>;
}

/// Being inside an entry, and inside of what that is in: a link of the chain.
#[derive(Debug)]
pub(crate) struct Inside {
    entry: Arc<Frame>,
    /// What kind of lock was asked for, where the options said.
    site: Option<Site>,
    /// Whether the lease had ended before this code began: it is no holder.
    without_lease: bool,
    around: Option<Arc<Inside>>,
}

/// One entry into a hold: the acquisition itself, or a nested call inside it.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) hold: Arc<Hold>,
    /// Also tells which manager the hold is of.
    pub(crate) watchdog: Arc<Watchdog>,
    /// 1 for the acquisition, 2 for a call nested in it, and so on.
    pub(crate) depth: u32,
    /// What this entry asked for, which may be less than what the hold has.
    pub(crate) sharing: Sharing,
    gate: Gate,
    /// The turn it was let in by; gone when its guard and all that is inside of it are.
    turn: Option<Weak<Turn>>,
    /// Of several keys, the entries into the holds that this call chain had already.
    beside: OnceLock<Vec<Arc<Frame>>>,
    /// When its body began.
    began: OnceLock<Instant>,
}

impl Frame {
    fn new(
        hold: Arc<Hold>,
        watchdog: Arc<Watchdog>,
        depth: u32,
        sharing: Sharing,
        turn: Option<Weak<Turn>>,
    ) -> Self {
        let (beside, began) = (OnceLock::new(), OnceLock::new());
        Self { hold, watchdog, depth, sharing, gate: Gate::new(), turn, beside, began }
    }

    /// The first entry into a hold.
    pub(crate) fn first(hold: Arc<Hold>, watchdog: Arc<Watchdog>) -> Self {
        let sharing = hold.claim().sharing();
        Self::new(hold, watchdog, 1, sharing, None)
    }

    /// Of several keys, those whose holds were entered again for the same call.
    pub(crate) fn stands_beside(&self, others: impl Iterator<Item = Arc<Self>>) {
        self.beside.get_or_init(|| others.collect());
    }

    /// Its body begins: for a guard, the code of who got it.
    pub(crate) fn begins(&self, now: Instant) {
        self.began.get_or_init(|| now);
    }

    /// When its body began, if it has.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.began.get().copied()
    }

    /// Waits for this entry's turn to let a child in; none if nobody can be inside of it any more.
    pub(crate) async fn turn(self: &Arc<Self>, sharing: Sharing) -> Option<Arc<Turn>> {
        self.let_in(gate::turn(self, sharing).await)
    }

    /// The turn, if nobody has it.
    pub(crate) fn try_turn(self: &Arc<Self>, sharing: Sharing) -> Option<Arc<Turn>> {
        self.let_in(gate::try_turn(self, sharing)?)
    }

    fn let_in(&self, inner: gate::Turn<Self>) -> Option<Arc<Turn>> {
        let around = match &self.turn {
            Some(turn) => Some(turn.upgrade()?),
            None => None,
        };
        Some(Arc::new(Turn { inner, _around: around }))
    }

    /// Whether the nested call whose entry this is has returned, and nobody is inside of it.
    pub(crate) fn is_over(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.strong_count() == 0)
    }

    /// The holds that the call asked for: this entry's, and those beside it.
    fn holds(&self) -> impl Iterator<Item = &Arc<Hold>> {
        let beside = self.beside.get().into_iter().flatten();
        std::iter::once(&self.hold).chain(beside.map(|entry| &entry.hold))
    }

    /// An error, unless all that the call asked for is held.
    pub(crate) fn ensure_held(&self, now: Instant) -> Result<(), Error> {
        self.holds().try_for_each(|hold| hold.ensure_held(now))?;
        match self.is_over() {
            true => Err(self.hold.lost(LostReason::Released)),
            false => Ok(()),
        }
    }

    /// The earliest end of what the call asked for, if nothing is renewed.
    pub(crate) fn valid_until(&self) -> Instant {
        let ends = self.holds().map(|hold| hold.valid_until());
        ends.min().unwrap_or_else(|| self.hold.valid_until())
    }

    /// Waits until one of the holds that the call asked for has ended.
    pub(crate) async fn ended(self: Arc<Self>) -> Error {
        let ended = async |hold: Arc<Hold>| hold.lost(hold.clone().ended().await);
        if self.beside.get().is_none() {
            return ended(self.hold.clone()).await;
        }
        select_all(self.holds().map(|hold| Box::pin(ended(hold.clone())))).await.0
    }
}

impl AsRef<Gate> for Frame {
    fn as_ref(&self) -> &Gate {
        &self.gate
    }
}

/// The turn to be inside an entry; the next child has it when this is dropped.
///
/// Who is further inside keeps it: another child beside them would be a second holder.
#[derive(Debug)]
pub(crate) struct Turn {
    inner: gate::Turn<Frame>,
    _around: Option<Arc<Turn>>,
}

impl Turn {
    /// The entry of the child whose turn it is.
    pub(crate) fn entry(self: &Arc<Self>) -> Frame {
        let Frame { hold, watchdog, depth, .. } = self.inner.around();
        let (sharing, turn) = (self.inner.sharing(), Some(Arc::downgrade(self)));
        Frame::new(hold.clone(), watchdog.clone(), depth + 1, sharing, turn)
    }
}

fn innermost() -> Option<Arc<Inside>> {
    INNERMOST.try_with(Option::clone).ok().flatten()
}

/// The innermost entry into a hold on `key`, if this chain has one from the manager that `watchdog`
/// serves; one that is over only if there is no other.
pub(crate) fn find(watchdog: &Arc<Watchdog>, key: &str) -> Option<Arc<Frame>> {
    let found = INNERMOST.try_with(|innermost| {
        let (mut inside, mut over) = (innermost.as_ref(), None);
        while let Some(Inside { entry, around, .. }) = inside.map(Arc::as_ref) {
            let mut keys = entry.hold.claim().keys().iter();
            if Arc::ptr_eq(&entry.watchdog, watchdog) && keys.any(|held| held.as_str() == key) {
                if !entry.is_over() {
                    return Some(entry.clone());
                }
                over = over.or(Some(entry));
            }
            inside = around.as_ref();
        }
        over.cloned()
    });
    found.ok().flatten()
}

/// All entries that the running code is inside of, of any manager, the innermost first; and what kind of
/// lock each asked for.
pub(crate) fn entries() -> impl Iterator<Item = (Arc<Frame>, Option<Site>)> {
    std::iter::successors(innermost(), |inside| inside.around.clone())
        .map(|inside| (inside.entry.clone(), inside.site))
}

/// The leases of those entries, but for code that [has none](Place::without_lease).
pub(crate) fn leases() -> impl Iterator<Item = Lease> {
    std::iter::successors(innermost(), |inside| inside.around.clone())
        .filter(|inside| !inside.without_lease)
        .map(|inside| Lease::new(inside.entry.clone()))
}

/// How many entries the running code is inside of within this one.
pub(crate) fn within(entry: &Arc<Frame>) -> usize {
    entries().take_while(|(inner, _)| !Arc::ptr_eq(inner, entry)).count()
}

/// A future in the call chain.
pub(crate) type Chained<F> = TaskLocalFuture<Option<Arc<Inside>>, F>;

/// Runs `future` inside of what this code is inside of.
pub(crate) fn as_it_is<F: Future>(future: F) -> Chained<F> {
    Place::here().run_future(future)
}

/// Where running code stands in the call chain.
#[derive(Clone, Debug)]
pub(crate) struct Place(Option<Arc<Inside>>);

impl Place {
    /// Where this code stands.
    pub(crate) fn here() -> Self {
        Self(innermost())
    }

    /// Inside these entries, the last of them innermost, and inside of what this code is inside of.
    pub(crate) fn inside(entries: impl IntoIterator<Item = (Arc<Frame>, Option<Site>)>) -> Self {
        let enter = |around, (entry, site)| {
            Some(Arc::new(Inside { entry, site, without_lease: false, around }))
        };
        Self(entries.into_iter().fold(innermost(), enter))
    }

    /// The innermost entry.
    pub(crate) fn entry(&self) -> Option<&Frame> {
        self.0.as_ref().map(|inside| &*inside.entry)
    }

    /// The same for code that is no holder, because the innermost lease ended before it began.
    pub(crate) fn without_lease(self) -> Self {
        Self(self.0.map(|inside| {
            let Inside { entry, site, around, .. } = &*inside;
            let (entry, site, around) = (entry.clone(), *site, around.clone());
            Arc::new(Inside { entry, site, without_lease: true, around })
        }))
    }

    /// Runs `work` there, on this thread.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        INNERMOST.sync_scope(self.0.clone(), work)
    }

    /// Runs `future` there.
    pub(crate) fn run_future<F: Future>(self, future: F) -> Chained<F> {
        INNERMOST.scope(self.0, future)
    }
}

/// The lease of the innermost hold that the running code is inside of, in any function below it.
///
/// `None` outside of an annotated function, [`with_lock`](crate::LockManager::with_lock) and
/// [`LockGuard::scope`](crate::LockGuard::scope), and in a spawned task that was not wrapped with
/// [`inherit`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// async fn write_to_ledger() {
///     let lease = lockattr::current().expect("only called with the account locked");
///     println!("UPDATE … WHERE fence < {}", lease.fencing_token());
/// }
///
/// let manager = LockManager::connect("memory://").await?;
/// manager.with_lock("account:7", LockOptions::new(), async |_lease| write_to_ledger().await).await?;
/// assert!(lockattr::current().is_none());
/// # Ok(())
/// # }
/// ```
pub fn current() -> Option<Lease> {
    let inside = innermost().filter(|inside| !inside.without_lease)?;
    Some(Lease::new(inside.entry.clone()))
}

/// Carries the call chain along into a task that is spawned: what it calls enters the holds around
/// this call again, instead of waiting for them.
///
/// The [scope](crate::LockManager::scope) of a manager comes along too. The task does not hold
/// anything for longer: once the hold around it is released, its nested calls get
/// [`Error::Lost`](crate::Error::Lost). If it was spawned by a nested call that has returned, they take
/// turns with what the outer call does since.
///
/// # Cancel safety
///
/// Dropping the returned future drops `future`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// manager.with_lock("report", LockOptions::new(), async |lease| {
///     let token = lease.fencing_token();
///     let part = lockattr::inherit(async move { lockattr::current().map(|l| l.fencing_token()) });
///     assert_eq!(tokio::spawn(part).await.unwrap(), Some(token));
/// }).await?;
/// # Ok(())
/// # }
/// ```
pub fn inherit<F: Future>(future: F) -> impl Future<Output = F::Output> {
    default_manager::as_it_is(as_it_is(future))
}

/// Carries the call chain along into plain code on another thread, as [`inherit`] does into a task: what
/// it calls enters the holds around this call again.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, distributed_lock};
///
/// #[distributed_lock(key = "stock")]
/// fn count() -> Result<u32, lockattr::Error> {
///     Ok(lockattr::current().map_or(0, |lease| lease.depth()))
/// }
///
/// #[distributed_lock(key = "stock")]
/// async fn audit() -> Result<u32, lockattr::Error> {
///     let count = lockattr::inherit_blocking(count);
///     tokio::task::spawn_blocking(count).await.expect("it does not panic")
/// }
///
/// let manager = LockManager::connect("memory://").await?;
/// assert_eq!(manager.scope(audit()).await?, 2);
/// # Ok(())
/// # }
/// ```
pub fn inherit_blocking<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let (place, scope) = (Place::here(), default_manager::Scope::here());
    move || scope.run(|| place.run(work))
}
