//! The runtime over a simulated network and simulated time.
//!
//! Hosts are the systems under processes, each with a `LockManager` on stores whose servers are other hosts. The
//! network, the time, what goes wrong and what the processes do come from one seed, and so does
//! the history that comes of it: the same each time.

mod audit;
mod client;
mod diary;
mod flaws;
mod holding;
mod ledger;
mod life;
mod line;
mod machine;
mod network;
mod outcome;
mod parcels;
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
pub use flaws::Flaw;
pub use outcome::Outcome;
pub use plan::{Fault, KINDS, Plan, Scene, Setup, Topology, Trouble};
pub use sweep::{Figures, seeds, sweep};
pub use world::{Wrong, run};
