//! Fencing tokens over independent nodes: the protocol of `redlock://`, in every state that three
//! nodes and a few acquisitions can reach.
//!
//! This is a model of the protocol, not the code. What a node does in one script is one step, and
//! between any two steps anything else may happen. `scheme.rs` lists the schemes, ours and wrong
//! ones; `world.rs` defines a state; `steps.rs` what can happen next; the crate's `search.rs`
//! visits every state. `docs/fencing-over-redlock.md` explains the result.
//!
//! Each test names the number of states, so that a model which has lost some of its steps does not
//! pass. The wrong schemes are tests as well: the search has to find the mistake, and the test
//! names the length of the shortest path to it.

mod clients;
mod clock_hints;
mod exclusion;
mod fencing;
mod nodes;
mod restarts;
mod retries;
mod scheme;
mod step;
mod steps;
mod world;
