//! The processes that a signal for the command reaches: the group that was made for it, and the
//! command itself if it has left that group, with the group that it leads then.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};

use super::presence;

/// Signals that a terminal sends. The leash relays only these to a command that has left its group,
/// because the group gets them from the terminal and from us alike.
pub(super) const OF_TERMINALS: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

const ENDINGS: [Signal; 4] = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];

/// The group, and the command's process ID while it cannot be reused.
#[derive(Debug)]
pub(super) struct Reach {
    group: Pid,
    command: Option<Pid>,
}

impl Reach {
    pub(super) fn of(group: Pid) -> Self {
        Self { group, command: None }
    }

    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Records the command that was started in the group.
    pub(super) fn set_command(&mut self, command: Pid) {
        self.command = Some(command);
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.to_strays(signal);
        // Last, as the leash is in the group too. Fails if no process is left in it.
        killpg(self.group, signal).ok();
    }

    pub(super) fn terminate(&self) {
        self.pass_on(Signal::SIGTERM);
    }

    /// Passes on a signal that this process received.
    pub(super) fn pass_on(&self, signal: Signal) {
        if OF_TERMINALS.contains(&signal) {
            killpg(self.group, signal).ok();
        } else {
            self.signal(signal);
        }
        if ENDINGS.contains(&signal) {
            // A stopped process handles the signal only when it continues.
            self.signal(Signal::SIGCONT);
        }
    }

    /// Relays a signal that the group received to a command that has left it.
    pub(super) fn relay(&self, signal: Signal) {
        self.to_strays(signal);
        self.signal(Signal::SIGCONT);
    }

    fn to_strays(&self, signal: Signal) {
        let Some(command) = self.command else { return };
        // If the command leads a group, the group has its ID.
        killpg(command, signal).ok();
        match getpgid(Some(command)) {
            Ok(group) if group == self.group || group == command => {}
            Err(Errno::ESRCH) => {}
            // In a group of other processes, possibly our own, only the command itself is meant.
            _ => {
                kill(command, signal).ok();
            }
        }
    }

    /// Forgets a command whose process ID no process has any more: it may be reused.
    pub(super) fn forget_if_ended(&mut self) {
        let is_there = |command: Pid| presence::of(command) || presence::in_group(command);
        self.command = self.command.filter(|command| is_there(*command));
    }

    /// Whether a process is alive in one of the groups, after the command and the leash have ended.
    pub(super) fn has_leftovers(&mut self) -> bool {
        self.forget_if_ended();
        self.command.is_some() || presence::in_group(self.group)
    }
}
