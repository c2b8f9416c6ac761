//! Fencing tokens over independent nodes: the protocol of `redlock://`, in every state that three
//! nodes and a few acquisitions can come to.
//!
//! Here the protocol is a model, not the code: what a node does in one script is one step, and
//! between any two steps anything else may happen. `scheme.rs` says which ways there are, ours and
//! those that are wrong; `world.rs` is what a state consists of; `steps.rs` what can happen next;
//! the crate's `search.rs` visits all of it. `docs/fencing-over-redlock.md` explains the result.
//!
//! Each test names how many states there are, so that a model which has lost some of its steps does
//! not pass for one that holds. The wrong ways are tests as well: the search has to find the mistake,
//! and how many steps the shortest way to it has is part of the test.

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
