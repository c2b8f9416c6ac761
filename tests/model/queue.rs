//! The store's wait queue: the protocol of `docs/queue.md`, in every state that three processes can
//! come to, whatever is lost, late, stopped or killed.
//!
//! Here the protocol is a model, not the code. One script of the store is one step (`scripts.rs`); what
//! a process does between two messages is one step (`process.rs`); what goes wrong is one step
//! (`faults.rs`); and a tick is one, which leases and entries end by (`process.rs`). Between any two steps
//! any other may happen. A message may take any number of ticks. `setting.rs` says which circumstances
//! there are, and which mistakes; `checks.rs` what must not happen; `fair.rs` what a living waiter does
//! when nothing fails any more. What this model shares with that of the free path is in `claims.rs`. The
//! crate's `search.rs` visits all of it.
//!
//! `holds.rs` has the tests of the protocol, and how many states there are, so that a model which has
//! lost some of its steps does not pass for one that holds. `mistakes.rs` has the ways that are wrong.
//! The search has to find each, in so many steps:
//! `cargo test -p lockattr-models queue::mistakes -- --nocapture` prints them.
//!
//! Not modelled: clocks that run apart (`redlock/exclusion.rs` has them); renewals, and `hold_at_least`;
//! the queue inside a process, and a process's next claim, which is one of another process to the
//! store; a claim that only asks once; the claims of a quorum or of several slots, which are notified to
//! come; runs that look at 12 waiters and go on; counters that outrun the server's clock before it
//! forgets everything; and a release that is given up unanswered.

mod checks;
mod fair;
mod faults;
mod holds;
mod locks;
mod mistakes;
mod process;
mod scripts;
mod setting;
mod settings;
mod step;
mod steps;
mod words;
mod world;
