//! `assert_held!`: code that must run under a lock checks that it does.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

use crate::hold::chain;
use crate::lock::key_template::KeyBuilder;
use crate::store::LockKey;
use crate::{Lease, LostReason};

use tokio::time::Instant;

/// The lease of the hold on `key` that the running code is inside of, of any manager.
///
/// The innermost, if there are several. `None` once the hold was released: a task that outlived it
/// is not inside of it any more. A lost lease is still found; [`ensure_held`](Lease::ensure_held)
/// reports the loss. Sends no request to the store.
///
/// [`assert_held!`](crate::assert_held) is for code that must not run without the lock.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// async fn fence(account: u64) -> Option<u64> {
///     lockattr::held(&format!("account:{account}")).map(|lease| lease.fencing_token().get())
/// }
///
/// let manager = LockManager::connect("memory://").await?;
/// let inside = manager.with_lock("account:7", LockOptions::new(), async |_lease| fence(7).await);
/// assert!(inside.await?.is_some());
/// assert_eq!(fence(7).await, None);
/// # Ok(())
/// # }
/// ```
pub fn held(key: &str) -> Option<Lease> {
    let on_key = |lease: &Lease| lease.keys().any(|held| held == key);
    chain::leases().filter(|lease| !is_over(lease)).find(on_key)
}

fn is_over(lease: &Lease) -> bool {
    let entry = lease.frame();
    let end = entry.hold().check(Instant::now());
    entry.is_over() || matches!(end, Err(LostReason::Released | LostReason::Forked))
}

/// Panics unless the running code is inside a hold on a key: for code that must run under a lock.
///
/// The key is written as in [`distributed_lock`](crate::distributed_lock): `"product:<id>"` with
/// any expressions that are in scope, escaped in the same way, or an expression for the whole key.
/// A message may follow, as in [`assert!`]. The panic names the key, the source location, and what
/// this call chain holds instead.
///
/// It checks the call chain and sends no request to the store, so it can be called before every
/// write, also in functions that are not `async`. It accepts any hold, of any manager, and in any
/// mode: also a `shared` hold, or one of several `permits`, under which other callers may run as
/// well. A lost lease does not make it panic, because that is no mistake in the program: call
/// [`ensure_held`](crate::Lease::ensure_held) on [`held`](crate::held)`(key)` to detect it. To run
/// in a task that outlived the hold is a mistake.
///
/// # Panics
///
/// Unless the key is held.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{Error, LockManager, assert_held, distributed_lock};
///
/// struct Item {
///     product: u64,
///     left: u32,
/// }
///
/// /// Only under the lock of the product.
/// fn write(item: &Item) {
///     assert_held!("product:<item.product>", "{} are left", item.left);
///     println!("UPDATE stock SET left = {} …", item.left);
/// }
///
/// #[distributed_lock(key = "product:<id>")]
/// async fn deduct(id: u64) -> Result<(), Error> {
///     write(&Item { product: id, left: 9 });
///     Ok(())
/// }
///
/// let manager = LockManager::connect("memory://").await?;
/// manager.scope(deduct(42)).await?;
///
/// let without = std::panic::catch_unwind(|| write(&Item { product: 42, left: 8 }));
/// assert!(without.is_err());
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! assert_held {
    ($($key_and_message:tt)*) => {
        $crate::__private::assert_held!($crate; $($key_and_message)*)
    };
}

/// [`assert_held!`](crate::assert_held) in debug builds, and nothing in others, as with
/// [`debug_assert!`].
///
/// # Panics
///
/// As `assert_held!`, in debug builds.
///
/// ```
/// fn write(product: u64) {
///     lockattr::debug_assert_held!("product:<product>");
/// }
/// # assert_eq!(std::panic::catch_unwind(|| write(42)).is_err(), cfg!(debug_assertions));
/// ```
#[macro_export]
macro_rules! debug_assert_held {
    ($($key_and_message:tt)*) => {
        if ::core::cfg!(debug_assertions) {
            $crate::assert_held!($($key_and_message)*);
        }
    };
}

/// A key that is not held.
#[derive(Debug)]
pub struct Unheld {
    /// `None` for one that could not be printed.
    key: Option<Cow<'static, str>>,
    template: &'static str,
}

/// The key, if the running code is not inside a hold on it.
pub fn unheld(key: KeyBuilder, template: &'static str) -> Option<Unheld> {
    let key = key.finish();
    let is_held = key.as_deref().is_some_and(|key| held(key).is_some());
    (!is_held).then_some(Unheld { key, template })
}

impl Unheld {
    /// The end of the assertion.
    ///
    /// # Panics
    ///
    /// Always.
    #[track_caller]
    #[cold]
    pub fn panic(&self, message: Option<fmt::Arguments<'_>>) -> ! {
        let location = Location::caller();
        let message = message.map(|message| format!(": {message}")).unwrap_or_default();
        panic!("{self} at {}:{}{message}; {}", location.file(), location.line(), Instead(self));
    }
}

/// `` `product:42` is not held ``
impl fmt::Display for Unheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "`{key}` is not held"),
            None => write!(f, "`{}` could not be printed, so it cannot be held", self.template),
        }
    }
}

/// What this call chain holds, and what to do.
struct Instead<'a>(&'a Unheld);

impl fmt::Display for Instead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut held, mut over) = (Vec::new(), false);
        for lease in chain::entries().map(Lease::new) {
            let keys = lease.frame().hold().claim().keys();
            if is_over(&lease) {
                over |= keys.iter().any(|key| Some(key.as_str()) == self.0.key.as_deref());
                continue;
            }
            for key in keys.iter().map(LockKey::as_str) {
                // Entered again, a hold is there more than once.
                if !held.contains(&format!("`{key}`")) {
                    held.push(format!("`{key}`"));
                }
            }
        }
        if over {
            f.write_str("it is already released, and this task outlived the hold; ")?;
        }
        match &*held {
            [] => f.write_str("this call chain holds no lock")?,
            held => write!(f, "this call chain holds {}", held.join(", "))?,
        }
        f.write_str(
            ". Call it in a function with `#[distributed_lock]` or under `with_lock`, and spawn \
             tasks with `lockattr::inherit`",
        )
    }
}
