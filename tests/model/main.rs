//! Models of the hand-off inside a process and of the gates of reentrancy: the code of
//! `lockattr/src` under every schedule of a few tasks.
//!
//! The code is compiled into this crate. Steps of the explorer replace tokio's channels and
//! semaphores and the standard library's mutex (`sync.rs`). There is no randomness: each model runs
//! until no schedule is left, and prints how many there were
//! (`cargo test -p lockattr-models -- --nocapture`). Only the number of tasks is small.
//!
//! Orders that differ only in independent steps count as one schedule (`schedules.rs`).
//!
//! The models of the protocol of `redlock://` (`redlock.rs`), of the store's wait queue
//! (`queue.rs`) and of the free path of Redis (`free_path.rs`) are of another kind: `search.rs`
//! visits every state. The last two share `claims.rs`.
//!
//! Not modelled: weak memory (each operation is one step that all other tasks see), and the inside
//! of tokio's own types, which tokio checks with loom.

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

/// What `gate.rs` and the wait queue import from `platform`.
mod platform {
    pub(crate) use crate::sync;
}

/// What `gate.rs` imports from `store`.
mod store {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Sharing {
        Exclusive,
        Shared,
    }
}
