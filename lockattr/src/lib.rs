#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(hidden)]
#[path = "expansion/mod.rs"]
pub mod __private;
#[cfg(feature = "__sim")]
#[doc(hidden)]
#[path = "sim.rs"]
pub mod __sim;
mod engines;
mod hold;
mod lease;
mod lock;
mod manager;
mod observe;
mod platform;
mod queue;
// Outside of `queue/`, because `tests/model` compiles `queue/mod.rs` into a crate of its own.
#[cfg(test)]
#[path = "queue/tests.rs"]
mod queue_tests;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod watchdog;

pub use __private::assert_held::held;
#[cfg(feature = "registry")]
pub use __private::registry::{AnnotatedLock, registry};
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub use engines::fence;
pub use hold::chain::current;
pub use hold::guard::LockGuard;
pub use hold::lease::Lease;
pub use hold::term::Term;
pub use lock::error::{Error, LostReason};
pub use lock::fencing::FencingToken;
pub use lock::held_lock::{HeldLock, HeldLocks};
pub use lock::holder::Holder;
pub use lock::holder_id::HolderId;
pub use lock::options::{LockOptions, Mode, OnLost, Release};
pub use lock::printable::printable;
/// # Example
///
/// ```
/// use lockattr::{Error, LockManager, distributed_lock};
///
/// struct Desk {
///     region: String,
/// }
///
/// impl Desk {
///     #[distributed_lock(key = "desk:<self.region>:<ticket>", ttl = "5s", wait = "3s", lease = lease)]
///     async fn close(&self, ticket: u64) -> Result<u64, Error> {
///         println!("closed {ticket} under fencing token {}", lease.fencing_token());
///         Ok(ticket)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let manager = LockManager::connect("memory://").await?;
/// let desk = Desk { region: "eu".into() };
/// assert_eq!(manager.scope(desk.close(17)).await?, 17);
/// # Ok(())
/// # }
/// ```
pub use lockattr_macros::distributed_lock;
pub use manager::inherit::{inherit, inherit_blocking};
pub use manager::lock_order::LockInversion;
pub use manager::{Leader, LeaderWatch, LockManager, LockManagerBuilder};
