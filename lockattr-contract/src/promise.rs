//! One promise of `Store`, and how its check is run.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;

use tokio::runtime::Builder;

use crate::fleet::{ErasedFleet, Fleet};
use crate::subject::Subject;

/// One promise of [`Store`](lockattr::store::Store), with the check of it.
///
/// [`promises`](crate::promises) has all of them. [`store_contract!`](crate::store_contract) makes a
/// test of each.
///
/// ```
/// let promise = lockattr_contract::promises::a_stale_release_frees_no_lock();
/// assert_eq!(promise.name(), "a_stale_release_frees_no_lock");
/// assert!(promise.sentence().starts_with("A release compares the owner token"));
/// assert_eq!((promise.group(), promise.needs()), ("lease", &[][..]));
/// ```
#[derive(Clone, Copy)]
pub struct Promise {
    pub(crate) name: &'static str,
    pub(crate) sentence: &'static str,
    pub(crate) group: &'static str,
    pub(crate) needs: &'static [&'static str],
    pub(crate) check: fn(Subject) -> Check,
}

/// A check that runs.
pub(crate) type Check = Pin<Box<dyn Future<Output = ()>>>;

impl Promise {
    /// The name of its test.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The promise, in a sentence. The message of a failed check begins with it.
    pub const fn sentence(&self) -> &'static str {
        self.sentence
    }

    /// The group that it belongs to.
    pub const fn group(&self) -> &'static str {
        self.group
    }

    /// The optional abilities without which a store cannot keep it.
    pub const fn needs(&self) -> &'static [&'static str] {
        self.needs
    }

    /// Checks it on a fleet, in a runtime of its own.
    ///
    /// # Panics
    ///
    /// If the store breaks the promise. The message has the promise's sentence, and then what the
    /// check found. It also panics inside another runtime, because it blocks its thread.
    ///
    /// ```
    /// # use lockattr::store::{AnyStore, MemoryStore};
    /// # struct OnMyStore;
    /// # impl lockattr_contract::Fleet for OnMyStore {
    /// #     async fn start() -> Self {
    /// #         Self
    /// #     }
    /// #     fn node(&self) -> AnyStore {
    /// #         AnyStore::new(MemoryStore::new())
    /// #     }
    /// # }
    /// lockattr_contract::promises::a_stale_release_frees_no_lock().check::<OnMyStore>();
    /// ```
    #[track_caller]
    pub fn check<F: Fleet>(&self) {
        let run = || {
            let mut builder = Builder::new_current_thread();
            let runtime = builder.enable_all().start_paused(F::PAUSED_CLOCK).build();
            runtime.expect("a runtime").block_on(async {
                let fleet = Rc::new(F::start().await);
                let subject = Subject::new(Rc::clone(&fleet) as Rc<dyn ErasedFleet>);
                (self.check)(subject).await;
                fleet.finish().await;
            });
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            let Self { name, sentence, .. } = self;
            panic!(
                "{sentence}\n  the store breaks this promise of `lockattr::store::Store`; {name} found: {}",
                found(&*panic)
            );
        }
    }
}

/// The message of a panic.
fn found(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

impl fmt::Debug for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sentence, group, needs, .. } = self;
        let mut shown = f.debug_struct("Promise");
        shown.field("name", name).field("sentence", sentence).field("group", group);
        shown.field("needs", needs).finish_non_exhaustive()
    }
}
