//! All tests that run the runtime and the attribute as a user does, in one program.

mod attribute;
mod cancellation;
mod faults;
mod harness;
mod key;
mod line;
mod options;
mod outcome;
mod redis;
mod redlock;
mod reentrancy;
mod runtimes;
mod scale;
mod secrets;
mod shutdown;
mod store_contract;
mod support;
mod timing;
mod watchdog;
