//! The part of `it` that starts no server, as a program of its own: `cargo mutants` rebuilds it for
//! every change, and `it` takes minutes.

mod attribute;
mod cancellation;
mod key;
mod observe;
mod options;
mod outcome;
mod reentrancy;
mod runtimes;
mod shutdown;
#[allow(dead_code, reason = "some of it is for the suites that start servers")]
mod support;
mod timing;
mod wait_queue;
mod watchdog;
