//! Who runs on which core, where it decides more than the lock does.
//!
//! One task that asks and waits is quickest where the server sits on the same core: neither has to
//! be woken on another. Left to itself the system changes its mind from round to round, and the
//! figures with it, by a factor of three.

/// Where the processes of a row run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Wherever the system likes.
    Any,
    /// The server on one core, the workers on another: each round trip wakes both, as over a
    /// network.
    Apart,
    /// All on one: what counts is how much they compute.
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

    /// To be called before the process starts threads.
    pub(super) fn keep_worker(self, process: u32) {
        if self != Self::Any {
            keep(process, 0);
        }
    }
}

/// Where there is none, as on a machine of one core, the system chooses.
#[cfg(target_os = "linux")]
fn keep(process: u32, core: usize) {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;

    let mut cores = CpuSet::new();
    let process = Pid::from_raw(i32::try_from(process).expect("a process id"));
    cores.set(core).and_then(|()| sched_setaffinity(process, &cores)).ok();
}

/// Only Linux lets a process be kept.
#[cfg(not(target_os = "linux"))]
fn keep(_process: u32, _core: usize) {}
