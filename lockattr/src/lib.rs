#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod assert_held;
mod body;
mod chain;
mod default_manager;
mod digits;
mod error;
mod fencing;
mod gate;
mod guard;
mod held_lock;
mod hold;
mod holder;
mod key;
mod key_template;
mod lease;
mod line;
// Beside `line.rs` and not in it: the models take that file into a crate of their own.
#[cfg(test)]
#[path = "line/tests.rs"]
mod line_tests;
mod lock_order;
mod machine;
mod manager;
mod observe;
mod options;
mod process;
mod registry;
mod retry;
mod settings;
mod site;
pub mod store;
mod store_url;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
mod thread_kind;
mod token;
mod turns;
mod watchdog;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
#[cfg(feature = "__sim")]
#[doc(hidden)]
#[path = "sim.rs"]
pub mod __sim;

pub use assert_held::held;
pub use chain::{current, inherit, inherit_blocking};
pub use error::{Error, LostReason};
pub use fencing::FencingToken;
pub use guard::LockGuard;
pub use held_lock::HeldLock;
pub use holder::Holder;
pub use lease::Lease;
pub use lock_order::LockInversion;
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
pub use manager::{LockManager, LockManagerBuilder};
pub use options::{LockOptions, Mode, OnLost, Release};
#[cfg(feature = "registry")]
pub use registry::{AnnotatedLock, registry};
