//! Who may read from the terminal: the command, while it runs, if it was us before.

use std::io::{self, IsTerminal, Stdin};

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// The terminal is the command's until this is dropped.
#[derive(Debug)]
pub(super) struct Foreground {
    terminal: Stdin,
    ours: Pid,
}

impl Foreground {
    /// Hands the terminal to the group, or it would be stopped at the first word that it reads. Not
    /// where we share it with others: in `lockattr run … | less` it is that program's.
    pub(super) fn of(group: Pid) -> Option<Self> {
        let (terminal, ours) = (io::stdin(), getpgrp());
        let alone =
            terminal.is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        if !alone || tcgetpgrp(&terminal) != Ok(ours) {
            return None;
        }
        tcsetpgrp(&terminal, group).ok()?;
        Some(Self { terminal, ours })
    }

    /// What Ctrl-C did to the command it would have done to a script around us.
    pub(super) fn pass_on(self, signal: Signal) {
        let ours = self.ours;
        drop(self);
        // We are in that group too, and listen.
        killpg(ours, signal).ok();
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // From the background that asks for a stop, unless this thread has it blocked.
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTTOU);
        stop.thread_block().ok();
        // The terminal may be gone.
        tcsetpgrp(&self.terminal, self.ours).ok();
        stop.thread_unblock().ok();
    }
}
