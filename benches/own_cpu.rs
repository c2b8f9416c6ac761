//! The time that this very process has computed.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

/// By all of its threads together, in and out of the kernel.
pub(crate) fn own_cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the system keeps account of us");
    let (user, system) = (usage.user_time(), usage.system_time());
    let micros = |seconds: i64, micros: i64| (seconds * 1_000_000 + micros).cast_unsigned();
    Duration::from_micros(
        micros(user.tv_sec(), user.tv_usec()) + micros(system.tv_sec(), system.tv_usec()),
    )
}
