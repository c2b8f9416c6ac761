//! Whether processes exist, as far as the system reports it.

use nix::errno::Errno;
use nix::sys::signal::{kill, killpg};
use nix::unistd::Pid;

/// Whether a process in this group is alive.
pub(super) fn in_group(group: Pid) -> bool {
    exists(killpg(group, None)) && !has_only_zombies(group)
}

pub(super) fn of(process: Pid) -> bool {
    exists(kill(process, None))
}

/// A process of another user, which we may not signal, exists as well.
fn exists(result: nix::Result<()>) -> bool {
    matches!(result, Ok(()) | Err(Errno::EPERM))
}

/// Whether the group has only zombies. A zombie stays in its group until its parent reaps it. An
/// orphan is the child of another process, which in a container may never reap it, and may be us.
fn has_only_zombies(group: Pid) -> bool {
    // Not on Linux, or `/proc` is not readable: no process is seen.
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut members = processes
        .filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok())
        .filter_map(|stat| state_in(&stat, group))
        .peekable();
    members.peek().is_some() && members.all(|state| matches!(state, 'Z' | 'X'))
}

/// The state letter of a process, if it is in this group.
fn state_in(stat: &str, group: Pid) -> Option<char> {
    // The process name precedes it in brackets, and may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    let (state, _parent, its_group) = (words.next()?, words.next()?, words.next()?);
    let is_member = its_group.parse() == Ok(group.as_raw());
    state.chars().next().filter(|_| is_member)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    use super::*;

    #[test]
    fn a_process_that_may_not_be_signalled_is_there() {
        assert!(exists(Ok(())));
        assert!(exists(Err(Errno::EPERM)));
        assert!(!exists(Err(Errno::ESRCH)));
    }

    /// Red without: `has_only_zombies`.
    #[test]
    fn a_process_that_has_ended_is_not_there_though_no_process_has_asked() {
        let mut cat = Command::new("cat");
        let mut cat = cat.process_group(0).stdin(Stdio::piped()).spawn().unwrap();
        let group = Pid::from_raw(cat.id().try_into().unwrap());
        assert!(in_group(group) && of(group));
        drop(cat.stdin.take());
        waitid(Id::Pid(group), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        assert!(killpg(group, None).is_ok(), "the zombie still exists");
        assert!(!in_group(group) && of(group));
        cat.wait().unwrap();
        assert!(!in_group(group));
    }

    #[test]
    fn a_name_is_not_mistaken_for_a_state() {
        let group = Pid::from_raw(70);
        assert_eq!(state_in("71 (a) Z 1 70 () R 1 70 70 0 -1", group), Some('R'));
        assert_eq!(state_in("71 (a) Z 1 7 70 70 0 -1", group), None);
        assert_eq!(state_in("", group), None);
    }
}
