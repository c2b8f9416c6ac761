//! The call chain: which holds the running code is inside of, and whose turn it is to enter again.
//!
//! Ownership belongs to the chain of calls, neither to the thread nor to the task. Each hold has a
//! gate that its direct children pass one at a time; a child's own children pass the child's gate.
//! So nested calls enter again, and two branches of a `join!` take turns. A child's turn lasts for as
//! long as anybody is inside of it, also a task that outlives it.

mod frame;

use std::sync::Arc;

use tokio::task::futures::TaskLocalFuture;

use crate::Lease;
use crate::hold::core::Core;
pub(crate) use frame::{Frame, Reentry};

tokio::task_local! {
    static INNERMOST: Option<Arc<ChainLink>>;
}

/// Being inside an entry, and inside of what that is in: a link of the chain.
#[derive(Debug)]
pub(crate) struct ChainLink {
    entry: Arc<Frame>,
    /// Whether the lease had ended before this code began: it is no holder.
    without_lease: bool,
    around: Option<Arc<ChainLink>>,
}

fn innermost() -> Option<Arc<ChainLink>> {
    INNERMOST.try_with(Option::clone).ok().flatten()
}

/// The innermost entry into a hold on `key`, if this chain has one from the manager that `watchdog`
/// serves; one that is over only if there is no other.
pub(crate) fn find(core: &Arc<Core>, key: &str) -> Option<Arc<Frame>> {
    let found = INNERMOST.try_with(|innermost| {
        let (mut inside, mut over) = (innermost.as_ref(), None);
        while let Some(ChainLink { entry, around, .. }) = inside.map(Arc::as_ref) {
            let mut keys = entry.hold().claim().keys().iter();
            if Arc::ptr_eq(entry.core(), core) && keys.any(|held| held.as_str() == key) {
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

/// All entries that the running code is inside of, of any manager, the innermost first.
pub(crate) fn entries() -> impl Iterator<Item = Arc<Frame>> {
    std::iter::successors(innermost(), |inside| inside.around.clone())
        .map(|inside| inside.entry.clone())
}

/// The leases of those entries, but for code that [has none](ChainPosition::without_lease).
pub(crate) fn leases() -> impl Iterator<Item = Lease> {
    std::iter::successors(innermost(), |inside| inside.around.clone())
        .filter(|inside| !inside.without_lease)
        .map(|inside| Lease::new(inside.entry.clone()))
}

/// How many entries the running code is inside of within this one.
pub(crate) fn within(entry: &Arc<Frame>) -> usize {
    entries().take_while(|inner| !Arc::ptr_eq(inner, entry)).count()
}

/// A future in the call chain.
pub(crate) type Chained<F> = TaskLocalFuture<Option<Arc<ChainLink>>, F>;

/// Runs `future` inside of what this code is inside of.
pub(crate) fn in_current_chain<F: Future>(future: F) -> Chained<F> {
    ChainPosition::here().run_future(future)
}

/// Where running code stands in the call chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainPosition(Option<Arc<ChainLink>>);

impl ChainPosition {
    /// Where this code stands.
    pub(crate) fn here() -> Self {
        Self(innermost())
    }

    /// Inside these entries, the last of them innermost, and inside of what this code is inside of.
    #[inline]
    pub(crate) fn inside(entries: impl IntoIterator<Item = Arc<Frame>>) -> Self {
        let enter =
            |around, entry| Some(Arc::new(ChainLink { entry, without_lease: false, around }));
        Self(entries.into_iter().fold(innermost(), enter))
    }

    /// The innermost entry.
    pub(crate) fn entry(&self) -> Option<&Frame> {
        self.0.as_ref().map(|inside| &*inside.entry)
    }

    /// The same for code that is no holder, because the innermost lease ended before it began.
    pub(crate) fn without_lease(self) -> Self {
        Self(self.0.map(|inside| {
            let ChainLink { entry, around, .. } = &*inside;
            let (entry, around) = (entry.clone(), around.clone());
            Arc::new(ChainLink { entry, without_lease: true, around })
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
/// [`inherit`](crate::inherit).
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
    let lease = INNERMOST.try_with(|innermost| {
        let inside = innermost.as_ref().filter(|inside| !inside.without_lease)?;
        Some(Lease::new(inside.entry.clone()))
    });
    lease.ok().flatten()
}
