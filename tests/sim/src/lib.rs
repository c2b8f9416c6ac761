//! The runtime over a simulated network and simulated time.
//!
//! Hosts are the systems under processes, each with a `LockManager` on stores whose servers are other hosts. The
//! network, the time, what goes wrong and what the processes do come from one seed, and so does
//! the history that comes of it: the same each time.

mod audit;
mod client;
mod connection;
mod event_log;
mod holding;
mod injected_bugs;
mod life;
mod machine;
mod messages;
mod network;
mod outcome;
mod plan;
mod process;
mod running;
mod server;
mod sweep;
mod task;
mod turn;
mod waits;
mod wire;
mod world;

pub use client::Habit;
pub use injected_bugs::InjectedBug;
pub use outcome::Outcome;
pub use plan::{Fault, KINDS, Plan, Scene, Setup, Topology, Trouble};
pub use sweep::{Figures, seeds, sweep};
pub use world::{Wrong, run};
