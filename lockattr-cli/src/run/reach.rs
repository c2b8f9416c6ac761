//! Whom a signal reaches that is meant for the command: the group that was made for it, and the command
//! itself where it has left that, with the group that it leads then.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};

use super::presence;

/// Those that a terminal sends. Of these the leash tells the command if that has left its group: it
/// hears them from the terminal as it does from us, and cannot know from whom.
pub(super) const OF_TERMINALS: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

/// Those by which a process is asked to end.
const ENDINGS: [Signal; 4] = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];

/// The group, and the command's number as long as it cannot be another's.
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

    /// It was started in the group.
    pub(super) fn is_for(&mut self, command: Pid) {
        self.command = Some(command);
    }

    /// Sends a signal to all.
    pub(super) fn signal(&self, signal: Signal) {
        self.to_strays(signal);
        // Last, as the leash is in there itself. It fails where no process is left to hear it.
        killpg(self.group, signal).ok();
    }

    /// Asks all to end.
    pub(super) fn ask_to_end(&self) {
        self.pass_on(Signal::SIGTERM);
    }

    /// A signal that we were sent.
    pub(super) fn pass_on(&self, signal: Signal) {
        if OF_TERMINALS.contains(&signal) {
            killpg(self.group, signal).ok();
        } else {
            self.signal(signal);
        }
        if ENDINGS.contains(&signal) {
            // One that stands still hears it only if it goes on.
            self.signal(Signal::SIGCONT);
        }
    }

    /// A signal that the group was sent, for who has left it.
    pub(super) fn relay(&self, signal: Signal) {
        self.to_strays(signal);
        self.signal(Signal::SIGCONT);
    }

    fn to_strays(&self, signal: Signal) {
        let Some(command) = self.command else { return };
        // The group that it leads, if it does, has its number.
        killpg(command, signal).ok();
        match getpgid(Some(command)) {
            Ok(group) if group == self.group || group == command => {}
            Err(Errno::ESRCH) => {}
            // In a group of others, which may be our own, only itself is meant.
            _ => {
                kill(command, signal).ok();
            }
        }
    }

    /// Once no process has the command's number any more, it may be another's soon.
    pub(super) fn forget_the_ended(&mut self) {
        let is_there = |command: Pid| presence::of(command) || presence::in_group(command);
        self.command = self.command.filter(|command| is_there(*command));
    }

    /// Whether anybody lives in one of the groups, of whom the command and the leash have ended.
    pub(super) fn left_behind(&mut self) -> bool {
        self.forget_the_ended();
        self.command.is_some() || presence::in_group(self.group)
    }
}
