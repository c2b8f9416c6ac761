//! The CPU time of this process.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

/// User and system time of all its threads.
pub(crate) fn own_cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the system counts CPU time");
    let (user, system) = (usage.user_time(), usage.system_time());
    let micros = |seconds: i64, micros: i64| (seconds * 1_000_000 + micros).cast_unsigned();
    Duration::from_micros(
        micros(user.tv_sec(), user.tv_usec()) + micros(system.tv_sec(), system.tv_usec()),
    )
}
