//! The part of `it` that starts no server, in a program of its own: `cargo mutants` builds it anew for
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
