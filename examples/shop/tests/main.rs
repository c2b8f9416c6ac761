//! The shop as a program among real servers: what customers get, what the rows and the lock store hold
//! afterwards, and what it says of itself.

mod customer;
mod dashboard;
mod failures;
mod orders;
mod running;
mod telemetry;
