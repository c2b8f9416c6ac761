//! The store's wait queue: the protocol of `docs/queue.md`, in every state that three processes can
//! reach, whatever is lost, late, stopped or killed.
//!
//! This is a model of the protocol, not the code. Each of these is one step: a script of the store
//! (`scripts.rs`), what a process does between two messages (`process.rs`), a fault (`faults.rs`),
//! and a tick, which brings leases and entries closer to their ends (`process.rs`). Between any two
//! steps any other may happen. A message may take any number of ticks. `setting.rs` lists the
//! circumstances and the mistakes, `checks.rs` what must not happen, and `fair.rs` what a living
//! waiter does when nothing fails any more. `claims.rs` is shared with the model of the free path.
//! The crate's `search.rs` visits every state.
//!
//! `holds.rs` tests the protocol. It names the number of states, so that a model which has lost
//! some of its steps does not pass. `mistakes.rs` has the mistakes. The search has to find each in
//! the stated number of steps: `cargo test -p lockattr-models queue::mistakes -- --nocapture`
//! prints them.
//!
//! Not modelled: clocks that drift apart (`redlock/exclusion.rs` has them); renewals, and
//! `hold_at_least`; the queue inside a process, and a process's next claim, which the store cannot
//! tell from one of another process; a claim that only asks once; claims of a quorum or of several
//! slots, which are notified to ask; scripts that read 12 waiters and continue later; counters that
//! outrun the server's clock before the server loses everything; and a release that is given up
//! without a reply.

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
