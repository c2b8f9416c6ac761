//! An entry in the list of held locks.

use crate::{FencingToken, Holder};

/// A held lock, as [`LockManager::held_locks`] lists it.
///
/// It is a snapshot, and out of date as soon as it is made.
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct HeldLock {
    /// The key, without the manager's prefix.
    pub key: String,
    /// The holder; of several, the one whose lease ends first, if the store knows that.
    pub holder: Holder,
    /// The number of holders: 1, or how many share the lock or have a permit.
    pub holders: u32,
    /// Whether others can hold it too: shared, or by permits.
    pub shared: bool,
    /// The length of the store's wait queue. Each process counts once, however many of its tasks
    /// wait.
    pub waiting: u64,
    /// The fencing token of that holder's acquisition, if the store keeps it with the lock. Holds
    /// that were handed off inside the holder's process have greater tokens.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub fencing_token: Option<FencingToken>,
}

impl HeldLock {
    /// A lock with one exclusive holder and no waiters; for a [`Store`](crate::store::Store).
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

/// The list of held locks, with a count of what could not be listed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// let guard = manager.acquire("product:42", LockOptions::new()).await?;
///
/// let held = manager.list_held_locks().await?;
/// assert_eq!((held.locks.len(), held.left_out), (1, 0));
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldLocks {
    /// The locks.
    pub locks: Vec<HeldLock>,
    /// The number of names under the prefix that no key can have: they are not UTF-8, or longer
    /// than 1 KiB, or the prefix alone. Only another program can have written them. `memory://` has
    /// no such names, because no other program can write to it.
    pub left_out: u64,
}

impl From<Vec<HeldLock>> for HeldLocks {
    fn from(locks: Vec<HeldLock>) -> Self {
        Self { locks, left_out: 0 }
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::HolderId;

    /// Red without: `skip_serializing_if`, and `try_from` for the token and the id.
    #[test]
    fn json_carries_a_held_lock_there_and_back() {
        let mut held = HeldLock::new(
            "product:42",
            Holder::from_value("service=orders pid=17", Some(Duration::from_millis(1_500))),
        );
        let json = serde_json::to_value(&held).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "key": "product:42",
                "holder": {
                    "id": held.holder.id.to_string(),
                    "service": "orders",
                    "process": 17,
                    "remaining": { "secs": 1, "nanos": 500_000_000 },
                },
                "holders": 1,
                "shared": false,
                "waiting": 0,
            })
        );
        held.holder.since = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
        held.fencing_token = Some(FencingToken::from_counter(5));
        let json = serde_json::to_string(&held).unwrap();
        assert!(json.contains(r#""fencing_token":5120"#), "{json}");
        assert_eq!(serde_json::from_str::<HeldLock>(&json).unwrap(), held);
        held.holder.done = true;
        let json = serde_json::to_string(&held).unwrap();
        assert!(json.contains(r#""done":true"#), "{json}");
        assert_eq!(serde_json::from_str::<HeldLock>(&json).unwrap(), held);
        assert!(serde_json::from_str::<FencingToken>("18446744073709551615").is_err());
        assert!(serde_json::from_str::<HolderId>(r#""nightly""#).is_err());
    }
}
