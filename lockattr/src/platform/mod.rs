//! What the process gets from the machine: randomness, the wall clock, its own identity, and the primitives that a model
//! checker replaces.

pub(crate) mod entropy;
pub(crate) mod process;
#[cfg(feature = "__sim")]
pub(crate) mod simulated;
pub(crate) mod sync;
pub(crate) mod timers;
