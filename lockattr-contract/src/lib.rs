//! The contract of [lockattr](https://docs.rs/lockattr)'s stores, as tests.
//!
//! The author of a [`Store`](lockattr::store::Store) runs the suite that lockattr's own stores
//! pass. Each promise of the trait's docs is one test with a name of its own. The message of a
//! failed test begins with the promise, in a sentence.
//!
//! # How to use it
//!
//! ```toml
//! [dev-dependencies]
//! lockattr-contract = "0.1"
//! ```
//!
//! Say how a check reaches the store, and call the macro in a test program:
//!
//! ```
//! # mod my_store {
//! #     use lockattr::store::{AnyStore, MemoryStore};
//! #     use std::sync::Arc;
//! #     #[derive(Clone, Default)]
//! #     pub struct MyServer(Arc<MemoryStore>);
//! #     impl MyServer {
//! #         pub fn start() -> Self {
//! #             Self::default()
//! #         }
//! #         pub fn connect(&self) -> AnyStore {
//! #             self.0.clone().into()
//! #         }
//! #     }
//! # }
//! use lockattr::store::AnyStore;
//! use lockattr_contract::{Fleet, store_contract};
//!
//! struct OnMyServer(my_store::MyServer);
//!
//! impl Fleet for OnMyServer {
//!     async fn start() -> Self {
//!         Self(my_store::MyServer::start()) // a server, a database or a file for one check
//!     }
//!     fn node(&self) -> AnyStore {
//!         self.0.connect() // one more process: in most cases `AnyStore::new(MyStore::open(…))`
//!     }
//! }
//!
//! store_contract!(OnMyServer);
//! ```
//!
//! `cargo test` then runs more than seventy tests. Each has a runtime of its own with one thread. They
//! need no dependency but this one. [`Fleet`] has four more items, all with defaults: a prefix for
//! tests that share one server, a paused clock for stores inside the process, what to wait for when
//! a process is gone, and a last look into the store.
//!
//! # Groups
//!
//! | group | checks | left out with |
//! |---|---|---|
//! | `lease` | acquire, renew, release; the owner token; when a lease ends; batches; dropped futures | – |
//! | `tokens` | fencing tokens grow, keys are kept apart, one of many callers acquires | – |
//! | `processes` | all of that between store objects that share nothing in this process | – |
//! | `kept` | locks that stay held for a while after their release (`hold_at_least`) | – |
//! | `deadlocks` | `holder` shows what a manager with `detect_deadlocks` wrote for others | – |
//! | `wait_queue` | the order of the queue, grants, notifications, entries of dead processes | `wait_queue` |
//! | `shared` | readers and writers | `shared` |
//! | `permits` | several holders, counted | `permits` |
//! | `several_keys` | claims for several keys: all or none | `several_keys` |
//! | `listing` | `held_locks` | `listing` |
//! | `force_release` | `force_release` | `force_release` |
//! | `companions` | callers of one process that share a lock, before the queue | `companions` |
//! | `downgrade` | a writer that becomes a reader | `downgrade` |
//! | `done` | keys that stay done for a period: `mark_done` | `done` |
//!
//! A promise may need more than its group: that an exclusive claim is not overtaken by readers needs
//! `shared` and `wait_queue`.
//!
//! A store without an ability leaves it out, with the reason, and runs the rest:
//!
//! ```
//! # use lockattr::store::{AnyStore, MemoryStore};
//! # struct OnMyServer;
//! # impl lockattr_contract::Fleet for OnMyServer {
//! #     async fn start() -> Self {
//! #         Self
//! #     }
//! #     fn node(&self) -> AnyStore {
//! #         AnyStore::new(MemoryStore::new())
//! #     }
//! # }
//! lockattr_contract::store_contract!(OnMyServer, without: {
//!     wait_queue: "SQLite cannot notify another process",
//!     companions: "only of use with a wait queue",
//! });
//! ```
//!
//! `cargo test` lists what that leaves out, and why:
//!
//! ```text
//! test a_queued_claim_that_asks_again_keeps_its_place ... ignored, SQLite cannot notify another process
//! test a_store_without_wait_queues_queues_no_claim ... ok
//! ```
//!
//! The second line is a promise too: a caller that asks the store for what it does not have gets a
//! refusal. A store that ignores the second key of a claim would otherwise pass all tests.
//!
//! Three groups run only by name, as [`store_contract!(…, group: …)`](store_contract):
//!
//! | group | for a store |
//! |---|---|
//! | `quorum_node` | that is one of several in a [`RedlockStore`](lockattr::store::RedlockStore) |
//! | `overtaking` | that lets others have a key while a claim for several keys waits for another one |
//! | `connection_locks` | whose locks end with a connection and have no TTL. Choose the promises that it can keep with `only: […]` |
//!
//! # What it cannot check
//!
//! * **Durability.** No check restarts the server. After a restart without data, locks may be held
//!   twice for a moment; fencing tokens must still grow. Test it with your server.
//! * **Clocks.** No check sets a clock back or forward. Find out which clock ends a lease, and what
//!   happens to leases and tokens when it jumps.
//! * **Lost answers.** An error means that the outcome is unknown. No check cuts the connection. Put
//!   a proxy in front of your server and do so: the next commands have to work, and a claim whose
//!   answer was lost has to be released or granted again.
//! * **Failover.** Replicas that lag, and two masters at once, need tests of their own.
//! * **Rare interleavings.** The checks make up to 32 requests at the same time. That is a test and no
//!   proof: the owner token must be compared and the lock changed in one atomic step.
//! * **Speed.**
//!
//! [`examples/sqlite-store`](https://github.com/lockattr/lockattr/tree/main/examples/sqlite-store) is
//! a store that passes the suite, and the guide has a chapter on
//! [writing a store](https://github.com/lockattr/lockattr/blob/main/docs/guide/18-writing-a-store.md).

mod checks;
mod eventually;
mod fleet;
mod list;
mod promise;
pub mod promises;
mod subject;
mod tests_of;
mod waiter;

pub use fleet::Fleet;
pub use promise::Promise;
