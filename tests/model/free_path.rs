//! The free path of Redis: `SET … NX PX` and `INCR` acquire a lock that has no waiters, and one
//! compare-and-delete releases it.
//!
//! `docs/queue.md` describes it, and the queue behind it.
//!
//! The free path depends on one invariant: a lock that has waiters is never absent, and lives at
//! least as long as its queue. The search checks that invariant itself, and what follows from it:
//! no two claims hold conflicting locks, by the clocks of their own processes; no living waiter is
//! overtaken, dropped or left waiting; the fencing tokens of a key grow; and a released lock leaves
//! nothing behind.
//!
//! This is a model, not the code. Each of these is one step: a command of a pair (`pair.rs`), a
//! script (`scripts.rs`, with the queue in `serve.rs` and the invariant in `secure.rs`), what a
//! process does between two messages (`process.rs`, `lease.rs`), a fault (`faults.rs`,
//! `failover.rs`), and a tick (`tick.rs`), which brings leases, entries and keys closer to their
//! ends. Between any two steps any other may happen, and a message may take any number of ticks.
//! `setting.rs` lists the circumstances, `mistake.rs` the rules that can be left out, `checks.rs`
//! what must not happen, and `fair.rs` what a living waiter does when nothing fails any more.
//! `claims.rs` is shared with the model of the queue. The crate's `search.rs` visits every state.
//!
//! `holds.rs` and `holds_over_servers.rs` test the protocol. They name the number of states, so
//! that a model which has lost some of its steps does not pass. `holds_for_long.rs` has the
//! settings of millions of states: `cargo test -p lockattr-models free_path -- --ignored`.
//! `mistakes.rs` and `mistaken_counters.rs` leave out one rule after another. The search has to
//! find each mistake in the stated number of steps, and prints the shortest path:
//! `cargo test -p lockattr-models free_path::mistake -- --nocapture`.
//!
//! The model assumes that a server's clock is ahead of every token that its counter gave before:
//! there are fewer than a million acquisitions in a second. So a token by the clock is one more
//! than the greatest so far. A token that a clock cannot have given is below a floor.
//!
//! Three rules have no mistake here. *What a server without memory refuses* depends on the order of
//! the writes in a script, and a script is one step here; `tests/it/redis/refusals/memory.rs` has
//! such servers. *Independent counters do not order a quorum*: Redlock does not use the free path,
//! and its model is `redlock.rs`. *No mixed fleet*: an older version compares whole values, which
//! is `Mistake::NotEqualIsLost` and `Mistake::MarkedIsLost` in all processes instead of one.
//!
//! Not modelled:
//!
//! * the order of the writes in a script, and memory that runs out;
//! * the quorum of Redlock;
//! * clocks that drift apart (`redlock/exclusion.rs` has them);
//! * a failover in the middle of a pair over a connection that survives it, where the server
//!   refuses the rest as a replica;
//! * keys of a slot that move one by one, except for the redirected commands;
//! * claims for several slots, which are notified to ask, and the place they keep until they ask;
//! * a claim that asks in the place of another one of its process, because both can share the lock;
//! * the hint that a lock is contended, which only decides which caller sends its request to the script at once;
//! * scripts that read 12 waiters and continue later;
//! * marks that are only refreshed after half of their time, where each look here prolongs them;
//! * requests that join a queue without a look at its head;
//! * a process's next claim on the same connection, which is another claim of the same process
//!   here;
//! * the queue inside a process, except for the hand-off of a lease.

mod answers;
mod canonical;
mod checks;
mod count;
mod failover;
mod fair;
pub(crate) mod fault;
mod faults;
mod holds;
mod holds_for_long;
mod holds_over_servers;
mod lease;
mod locks;
mod mistake;
mod mistaken_counters;
mod mistakes;
mod pair;
mod process;
mod scripts;
mod secure;
mod serve;
mod server;
mod setting;
mod settings;
pub(crate) mod step;
mod steps;
mod tick;
mod words;
mod world;
