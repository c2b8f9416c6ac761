//! Runs the shop as a program with real servers, and checks its answers, the rows, the lock store,
//! and its logs and metrics.

mod alerts;
mod customer;
mod dashboard;
mod failures;
mod orders;
mod running;
mod telemetry;
