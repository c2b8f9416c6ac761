//! Assigns processes to cores, for rows where that matters more than the lock.
//!
//! One task with one request at a time is fastest if the server runs on the same core: neither has
//! to be woken on another. Without an assignment the system changes its choice from round to round,
//! and the figures change by a factor of three.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// On any core, as the system chooses.
    Any,
    /// The server on one core, the workers on another: each round trip wakes both, as over a
    /// network.
    Apart,
    /// All on one core, so that only CPU time counts.
    One,
}

impl Cores {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Apart => "apart",
            Self::One => "one",
        }
    }

    pub(super) fn keep_server(self, process: u32) {
        match self {
            Self::Any => {}
            Self::Apart => keep(process, 1),
            Self::One => keep(process, 0),
        }
    }

    /// Call this before the process starts threads.
    pub(super) fn keep_worker(self, process: u32) {
        if self != Self::Any {
            keep(process, 0);
        }
    }
}

/// Keeps the system's choice if the core is not available, for example on a machine with one core.
#[cfg(target_os = "linux")]
fn keep(process: u32, core: usize) {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;

    let mut cores = CpuSet::new();
    let process = Pid::from_raw(i32::try_from(process).expect("a process id"));
    cores.set(core).and_then(|()| sched_setaffinity(process, &cores)).ok();
}

/// Only Linux supports this.
#[cfg(not(target_os = "linux"))]
fn keep(_process: u32, _core: usize) {}
