//! What an author writes: how the checks reach the store.

use std::future::ready;
use std::pin::Pin;

use lockattr::store::AnyStore;

/// One store, seen from as many processes as a check needs.
///
/// Each check [starts](Self::start) a fleet of its own, and asks it for one or two
/// [nodes](Self::node): store objects that share nothing in this process and reach the same locks,
/// as two processes would.
///
/// ```
/// use std::sync::Arc;
///
/// use lockattr::store::{AnyStore, MemoryStore};
/// use lockattr_contract::Fleet;
///
/// /// A store inside this process: all nodes are one object.
/// struct InMemory(Arc<MemoryStore>);
///
/// impl Fleet for InMemory {
///     // The leases of this store run on tokio's clock, so no check has to wait in real time.
///     const PAUSED_CLOCK: bool = true;
///
///     async fn start() -> Self {
///         Self(Arc::new(MemoryStore::new()))
///     }
///
///     fn node(&self) -> AnyStore {
///         self.0.clone().into()
///     }
/// }
///
/// lockattr_contract::promises::a_lease_ends_by_itself().check::<InMemory>();
/// ```
pub trait Fleet: Sized + 'static {
    /// Whether the checks run on a paused tokio clock, which jumps over every pause.
    ///
    /// Set it only if the store takes all its time from [`tokio::time`] and waits for nothing
    /// outside of this process. The clock of a server does not jump.
    const PAUSED_CLOCK: bool = false;

    /// Prepares one check: starts a server or finds a running one, creates a file or a database.
    ///
    /// It panics if that fails. The checks of one program run at the same time, in one thread and
    /// one runtime each.
    fn start() -> impl Future<Output = Self>;

    /// Returns the store as one more process sees it: a new object with a connection of its own.
    fn node(&self) -> AnyStore;

    /// Returns what the names of all locks of this check begin with.
    ///
    /// Checks that share a server, a file or a table need a prefix each, for example with a number
    /// that [`start`](Self::start) counts up.
    fn prefix(&self) -> String {
        "contract:".to_owned()
    }

    /// Waits until the store knows that the process of this
    /// [subscriber](lockattr::store::Subscriber::id) is gone.
    ///
    /// Only a store with wait queues that relies on such knowledge needs it: a server that sees a
    /// closed connection, for example. One check calls it, after it dropped that process' node.
    fn wait_until_gone(&self, _subscriber: u64) -> impl Future<Output = ()> {
        ready(())
    }

    /// Runs after a check that passed, when it has dropped its nodes. It panics if the store holds
    /// what it should not, such as entries of locks that are free.
    fn finish(&self) -> impl Future<Output = ()> {
        ready(())
    }
}

/// [`Fleet`] with boxed futures, so that the checks are compiled once and not for each fleet.
pub(crate) trait ErasedFleet {
    fn node(&self) -> AnyStore;
    fn prefix(&self) -> String;
    fn wait_until_gone(&self, subscriber: u64) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

impl<F: Fleet> ErasedFleet for F {
    fn node(&self) -> AnyStore {
        Fleet::node(self)
    }

    fn prefix(&self) -> String {
        Fleet::prefix(self)
    }

    fn wait_until_gone(&self, subscriber: u64) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(Fleet::wait_until_gone(self, subscriber))
    }
}
