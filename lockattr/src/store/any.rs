//! The adapter between [`Store`], whose methods are `async fn`, and a manager, which holds any kind of store.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Store, StoreError, Subscriber,
};
use crate::{FencingToken, HeldLock, HeldLocks, Holder, HolderId};

/// A store of any kind, behind one pointer. It is cheap to clone, and all clones are the same store.
///
/// Any [`Store`], and an `Arc` of one, converts into it, so code seldom has to name it:
///
/// ```
/// use lockattr::store::{AnyStore, MemoryStore, RedlockStore};
///
/// let nodes = (0..3).map(|_| AnyStore::new(MemoryStore::new()));
/// let quorum = RedlockStore::new(nodes)?;
/// # let _ = quorum;
/// # Ok::<(), lockattr::Error>(())
/// ```
#[derive(Clone)]
pub struct AnyStore(Arc<dyn ErasedStore>);

impl AnyStore {
    /// Wraps a store.
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }
}

impl<S: Store> From<S> for AnyStore {
    fn from(store: S) -> Self {
        Self::new(store)
    }
}

impl<S: Store> From<Arc<S>> for AnyStore {
    fn from(store: Arc<S>) -> Self {
        Self(store)
    }
}

impl Deref for AnyStore {
    type Target = dyn ErasedStore;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! erased {
    (
        async { $($name:ident($($arg:ident: $type:ty),*) -> $output:ty;)* }
        plain { $($plain:ident($($plain_arg:ident: $plain_type:ty),*) -> $plain_output:ty;)* }
    ) => {
        /// [`Store`] with boxed futures. Implement [`Store`] instead.
        #[doc(hidden)]
        #[allow(missing_docs, reason = "each method is that of `Store`")]
        pub trait ErasedStore: Any + Debug + Send + Sync {
            $(fn $name<'a>(&'a self, $($arg: $type),*) -> BoxFuture<'a, $output>;)*
            $(fn $plain(&self, $($plain_arg: $plain_type),*) -> $plain_output;)*
        }

        impl<S: Store> ErasedStore for S {
            $(fn $name<'a>(&'a self, $($arg: $type),*) -> BoxFuture<'a, $output> {
                Box::pin(Store::$name(self, $($arg),*))
            })*
            $(fn $plain(&self, $($plain_arg: $plain_type),*) -> $plain_output {
                Store::$plain(self, $($plain_arg),*)
            })*
        }
    };
}

erased! {
    async {
        acquire(request: &'a AcquireRequest) -> Result<AcquireOutcome, StoreError>;
        renew(requests: &'a [RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>>;
        release(requests: &'a [ReleaseRequest]) -> Vec<Result<ReleaseOutcome, StoreError>>;
        holder(key: &'a LockKey) -> Result<Option<Holder>, StoreError>;
        held_locks(prefix: &'a str) -> Result<Vec<HeldLock>, StoreError>;
        list_held_locks(prefix: &'a str) -> Result<HeldLocks, StoreError>;
        force_release(key: &'a LockKey, holder: &'a HolderId) -> Result<bool, StoreError>;
        next_token(key: &'a LockKey) -> Result<Option<FencingToken>, StoreError>;
        mark_done(claim: &'a Claim, lasts: Duration) -> Result<ReleaseOutcome, StoreError>;
        ping() -> Result<(), StoreError>;
    }
    plain {
        subscribe(subscriber: &Arc<Subscriber>) -> ();
        watch_for_waiters(claim: &Claim, until: Instant) -> ();
        notes_departures() -> bool;
        entry_lifetime(ttl: Duration) -> Duration;
        needs_io() -> bool;
        supports_companions() -> bool;
        supports_downgrade() -> bool;
        shows_values() -> bool;
        keeps_long_values() -> bool;
        longest_ttl() -> Duration;
        kind() -> Cow<'static, str>;
        address() -> Option<String>;
        refuses(key: &LockKey) -> Option<String>;
        refuses_claim(claim: &Claim) -> Option<String>;
        refuses_done() -> Option<String>;
    }
}
