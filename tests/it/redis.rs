//! One real Redis: what stands in it, how it is reached, and what happens when it goes away.

mod away;
mod blocked;
mod cancellation;
mod fencing;
mod herd;
mod meddling;
mod outcome;
mod processes;
mod reach;
mod refusals;
mod runtimes;
mod stopped;
mod unknown;
mod value;
