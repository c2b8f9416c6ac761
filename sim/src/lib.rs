//! The runtime over a simulated network and simulated time.
//!
//! Hosts are processes, each with a `LockManager` on stores whose servers are other hosts. The
//! network, the time, what goes wrong and what the processes do come from one seed, and so does
//! the history that comes of it: the same each time.

mod audit;
mod client;
mod flaws;
mod holding;
mod ledger;
mod life;
mod line;
mod machine;
mod outcome;
mod parcels;
mod plan;
mod process;
mod server;
mod sweep;
mod task;
mod turn;
mod wire;
mod world;

pub use client::Habit;
pub use flaws::Flaw;
pub use outcome::Outcome;
pub use plan::{Fault, KINDS, Plan, Setup, Topology, Trouble};
pub use sweep::{Figures, Share, seeds, sweep};
pub use world::{Wrong, run};
