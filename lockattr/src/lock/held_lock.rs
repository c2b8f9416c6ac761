//! One lock that is held, as a list of all of them shows it.

use crate::{FencingToken, Holder};

/// A lock that somebody holds: a line of what [`LockManager::held_locks`] lists.
///
/// A report, out of date as soon as it is made.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{HeldLock, LockManager, LockOptions};
///
/// let manager = LockManager::builder().url("memory://").service("orders").build()?;
/// let guard = manager.acquire("product:42", LockOptions::new()).await?;
///
/// let [held]: [HeldLock; 1] = manager.held_locks().await?.try_into().expect("one lock");
/// assert_eq!(held.key, "product:42");
/// assert_eq!(held.holder.service.as_deref(), Some("orders"));
/// assert_eq!((held.holders, held.waiting, held.shared), (1, 0, false));
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// [`LockManager::held_locks`]: crate::LockManager::held_locks
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldLock {
    /// The key, without the manager's prefix.
    pub key: String,
    /// Who has it; of several, the one whose lease ends first, where the store can tell.
    pub holder: Holder,
    /// How many have it: 1, or how many share it or have a permit.
    pub holders: u32,
    /// Whether it is held in a way that others can hold it too: shared, or by permits.
    pub shared: bool,
    /// How many wait in the store's queue for it: each process counts once, however many of its
    /// tasks wait.
    pub waiting: u64,
    /// The number of that holder's acquisition, where the store keeps it with the lock. Holds that
    /// were handed off inside the holder's process have greater ones.
    pub fencing_token: Option<FencingToken>,
}

impl HeldLock {
    /// A lock that one holder has alone, and no caller waits for; for a [`Store`](crate::store::Store).
    ///
    /// ```
    /// use lockattr::{HeldLock, Holder};
    ///
    /// let mut held = HeldLock::new("product:42", Holder::from_value("service=orders", None));
    /// held.waiting = 3;
    /// assert_eq!((held.holders, held.shared), (1, false));
    /// ```
    pub fn new(key: impl Into<String>, holder: Holder) -> Self {
        Self { key: key.into(), holder, holders: 1, shared: false, waiting: 0, fencing_token: None }
    }
}
