//! The call chain: the holds that the running code is inside of, and the order of nested entries.
//!
//! A hold belongs to a chain of calls, not to a thread or a task. Each entry into a hold has a gate
//! that its direct children pass one at a time; a child's own children pass the child's gate. So a
//! nested call re-enters the hold, and two branches of a `join!` enter it one after the other. A
//! child blocks the gate for as long as any code runs inside it, including a task that outlives it.

mod frame;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::futures::TaskLocalFuture;

use crate::Lease;
use crate::hold::core::Core;
pub(crate) use frame::{Frame, Reentry};

tokio::task_local! {
    static INNERMOST: Option<Arc<ChainLink>>;
}

/// A link of the chain: an entry, and the link around it.
#[derive(Debug)]
pub(crate) struct ChainLink {
    entry: Arc<Frame>,
    /// Whether the lease had ended before this code began, so that the code holds no lock.
    without_lease: bool,
    around: Option<Arc<ChainLink>>,
}

fn innermost() -> Option<Arc<ChainLink>> {
    INNERMOST.try_with(Option::clone).ok().flatten()
}

/// The innermost entry of this chain into a hold on `key`, from the manager that `core` belongs to.
/// An entry that is over is returned only if there is no other.
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

/// All entries that the running code is inside of, of any manager, innermost first.
pub(crate) fn entries() -> impl Iterator<Item = Arc<Frame>> {
    std::iter::successors(innermost(), |inside| inside.around.clone())
        .map(|inside| inside.entry.clone())
}

/// The leases of those entries, except for code that [has none](ChainPosition::without_lease).
pub(crate) fn leases() -> impl Iterator<Item = Lease> {
    std::iter::successors(innermost(), |inside| inside.around.clone())
        .filter(|inside| !inside.without_lease)
        .map(|inside| Lease::new(inside.entry.clone()))
}

/// The number of entries between the running code and this one.
pub(crate) fn within(entry: &Arc<Frame>) -> usize {
    entries().take_while(|inner| !Arc::ptr_eq(inner, entry)).count()
}

pub(crate) type Chained<F> = TaskLocalFuture<Option<Arc<ChainLink>>, F>;

/// Runs `future` at the current position of the chain.
pub(crate) fn in_current_chain<F: Future>(future: F) -> Chained<F> {
    ChainPosition::here().run_future(future)
}

/// A position in the call chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainPosition(Option<Arc<ChainLink>>);

impl ChainPosition {
    pub(crate) fn here() -> Self {
        Self(innermost())
    }

    /// Inside these entries, the last of them innermost, and inside the current position.
    #[inline]
    pub(crate) fn inside(entries: impl IntoIterator<Item = Arc<Frame>>) -> Self {
        let enter =
            |around, entry| Some(Arc::new(ChainLink { entry, without_lease: false, around }));
        Self(entries.into_iter().fold(innermost(), enter))
    }

    pub(crate) fn entry(&self) -> Option<&Frame> {
        self.0.as_ref().map(|inside| &*inside.entry)
    }

    /// The same position for code that holds no lock, because the innermost lease ended before it
    /// began.
    pub(crate) fn without_lease(self) -> Self {
        Self(self.0.map(|inside| {
            let ChainLink { entry, around, .. } = &*inside;
            let (entry, around) = (entry.clone(), around.clone());
            Arc::new(ChainLink { entry, without_lease: true, around })
        }))
    }

    /// Runs `work` at this position, on this thread.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        INNERMOST.sync_scope(self.0.clone(), work)
    }

    /// Polls `code` at this position.
    // Not generic: the compiler would repeat it for each body.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        code: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>,
    ) -> Poll<()> {
        let mut inside = pin!(INNERMOST.scope(self.0.take(), poll_fn(code)));
        let polled = inside.as_mut().poll(context);
        self.0 = inside.take_value().flatten();
        polled
    }

    pub(crate) fn run_future<F: Future>(self, future: F) -> Chained<F> {
        INNERMOST.scope(self.0, future)
    }
}

/// Drops a body with `drops`, at the position where it was polled, so that its values are dropped
/// inside the hold.
pub(crate) fn drop_inside(position: Option<ChainPosition>, drops: &mut dyn FnMut()) {
    let Some(position) = position else { return drops() };
    let last = Last(drops);
    // By way of a future that is dropped unpolled: a thread that is ending may have no task-locals
    // any more, and there `ChainPosition::run` would panic, which ends the process.
    drop(position.run_future(async move { drop(last) }));
}

/// Drops the body when it is dropped.
struct Last<'a>(&'a mut dyn FnMut());

impl Drop for Last<'_> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The lease of the innermost hold that the running code is inside of, at any call depth.
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
