//! One real Redis: what stands in it, how it is reached, and what happens when it goes away.

mod away;
mod cancellation;
mod fencing;
mod herd;
mod meddling;
mod processes;
mod reach;
mod refusals;
mod unknown;
mod value;
