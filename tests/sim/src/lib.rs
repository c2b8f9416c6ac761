//! Runs the runtime over a simulated network and simulated time.
//!
//! Each host is the operating system of a process with a `LockManager`, whose stores are servers on
//! other hosts. One seed determines the network, the time, the faults and the work of the
//! processes, and so the resulting history: it is the same each time.

mod audit;
mod campaign;
mod client;
mod connection;
mod event_log;
mod holding;
mod injected_bugs;
mod leader;
mod leaderless;
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
mod term_log;
mod term_resource;
mod turn;
mod waits;
mod wire;
mod world;

pub use client::Habit;
pub use injected_bugs::InjectedBug;
pub use leaderless::Replaced;
pub use outcome::{Outcome, Verdict};
pub use plan::{Fault, KINDS, Plan, Scene, Setup, Topology, Trouble};
pub use sweep::{Figures, seeds, sweep};
pub use world::{Wrong, run};
