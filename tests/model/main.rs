//! The hand-off inside a process and the gates of reentrancy, as they are in `lockattr/src`, under
//! every schedule there is of a few tasks.
//!
//! The files are compiled into here with steps of the explorer's in place of tokio's channels and
//! semaphores and of the standard library's mutex (`sync.rs`). Nothing is left to chance and
//! nothing is left out: each model runs until there is no other schedule, and prints how many there
//! were (`cargo test -p lockattr-models -- --nocapture`). What is small is the number of tasks.
//!
//! Orders that differ only in steps that do not meet count as one schedule (`schedules.rs`).
//!
//! The protocol of `redlock://`, in `redlock.rs`, that of the store's wait queue, in `queue.rs`, and the free path of
//! Redis, in `free_path.rs`, are models of another kind: `search.rs` visits every state of them. The last two share `claims.rs`.
//!
//! Not modelled: weak memory (each operation is one step that all others see) and what tokio's own
//! types do inside, which tokio checks with loom.

mod claims;
mod crowd;
mod explore;
mod free_path;
mod gates;
mod inside;
mod limits;
mod linger;
mod lock;
mod past;
mod queue;
mod redlock;
mod schedules;
mod search;
mod sync;
mod waiters;

#[path = "../../lockattr/src/hold/gate.rs"]
mod gate;
#[path = "../../lockattr/src/queue/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the models need a part of it")]
mod wait_queue;

/// What both files take from the platform.
mod platform {
    pub(crate) use crate::sync;
}

/// What `gate.rs` takes from the store's seam.
mod store {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Sharing {
        Exclusive,
        Shared,
    }
}
