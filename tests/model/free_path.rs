//! The free path of Redis: a lock that no process waits for is taken by `SET … NX PX` and `INCR`, and given back by one
//! compare-and-delete. `docs/queue.md` describes it, and the queue behind it.
//!
//! It rests on one invariant: a lock that has waiters is never absent, and lives at least as long as its queue. The
//! search checks that invariant itself, and what it is for: no two claims hold what they must not, by the clocks of
//! their own processes; no living waiter is overtaken, dropped or left waiting; the numbers of a key's acquisitions
//! grow; and what is given back leaves nothing behind.
//!
//! This is a model, not the code. A command of a pair is one step (`pair.rs`), and so is a script (`scripts.rs`, with
//! the queue in `serve.rs` and the invariant in `secure.rs`). What a process does between two messages is one step
//! (`process.rs`, `lease.rs`), each fault is one (`faults.rs`, `failover.rs`), and so is a tick (`tick.rs`), by which
//! leases, entries and keys end. Between any two steps any other may happen, and a message may take any number of
//! ticks. `setting.rs` says which circumstances there are, `mistake.rs` which rules can be left out, `checks.rs` what
//! must not happen, and `fair.rs` what a living waiter does when nothing fails any more. What this model shares with that
//! of the queue is in `claims.rs`. The crate's `search.rs` visits all of it.
//!
//! `holds.rs` and `holds_over_servers.rs` have the tests of the protocol, with the number of states, so that a model which has
//! lost some of its steps does not pass for one that holds. `holds_for_long.rs` has the settings of millions of states:
//! `cargo test -p lockattr-models free_path -- --ignored`. `mistakes.rs` and `mistaken_counters.rs` leave out one rule
//! after another. The search has to find each, in so many steps, and prints the shortest way:
//! `cargo test -p lockattr-models free_path::mistake -- --nocapture`.
//!
//! The clock of a server is ahead of every number that its counter gave before, by assumption: there are fewer than a
//! million acquisitions in a second. So a number by the clock is one more than the greatest so far. A number that a
//! clock cannot have given is one below a floor.
//!
//! Three rules have no mistake here. *What a server without memory refuses* depends on the order of the writes in a script, and a
//! script is one step here; `tests/it/redis/refusals/memory.rs` has such servers. *Independent counters do not order a quorum*:
//! Redlock does not use the free path, and `models/redlock` is its model. *No mixed fleet*: an older version compares
//! whole values, which is `Mistake::NotEqualIsLost` and `Mistake::MarkedIsLost` in all processes instead of one.
//!
//! Not modelled: the order of the writes in a script, and memory that runs out; the quorum of Redlock; clocks that run
//! apart (`redlock/exclusion.rs` has them); a failover in the middle of a pair over a connection that lives on, where
//! the server refuses the rest as a replica; keys of a slot that move one by one, of which only the redirected
//! commands are here; claims for several slots, which are asked to come, and their place until they came; a claim that
//! asks in the place of another of its process, which can share with it; the hint that a lock is contended, which only decides which caller asks
//! the script at once; runs that look at 12 waiters and go on; marks that are refreshed only when half of their
//! time is over, where each look here prolongs them; questions that join a queue without a look at its head; a process's
//! next claim under the same connection, which is another claim of the same process here; and the queue
//! inside a process, of which only the hand-off of a lease is here.

mod answers;
mod canonical;
mod checks;
mod count;
mod failover;
mod fair;
mod fault;
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
mod step;
mod steps;
mod tick;
mod words;
mod world;
