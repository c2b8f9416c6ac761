//! The terminal's foreground: the command has it while it runs, if we had it before.

use std::fs::File;
use std::io::{self, IsTerminal, Stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::group::Place;
use crate::background::unstopped;

/// Gives the terminal to the command until this is dropped.
#[derive(Debug)]
pub(super) struct Foreground {
    terminal: Stdin,
    own_group: Pid,
}

impl Foreground {
    /// Hands the terminal to the group, or a read from it would stop the group. Not if we share it
    /// with another program, as in `lockattr run … | less`.
    pub(super) fn of(group: Pid) -> Option<Self> {
        let (terminal, own_group) = (io::stdin(), getpgrp());
        let is_shared = is_piped(io::stdout()) || is_piped(io::stderr());
        if !terminal.is_terminal() || is_shared || tcgetpgrp(&terminal) != Ok(own_group) {
            return None;
        }
        tcsetpgrp(&terminal, group).ok()?;
        Some(Self { terminal, own_group })
    }

    /// Repeats the signal of Ctrl-C for our own group, as a script around us would have received
    /// it.
    pub(super) fn pass_on(self, signal: Signal) {
        let own_group = self.own_group;
        drop(self);
        // We are in that group too, and receive the signal.
        killpg(own_group, signal).ok();
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // From the background this would stop us. The terminal may be gone.
        unstopped(|| tcsetpgrp(&self.terminal, self.own_group)).ok();
    }
}

/// The place of the command, given whether it has the terminal.
pub(super) fn place(foreground: Option<&Foreground>) -> Place {
    // Without a terminal, signals keep their defaults: the command may open a terminal of its own.
    let is_in_terminal = || File::open("/dev/tty").is_ok();
    if foreground.is_none() && is_in_terminal() { Place::Back } else { Place::Front }
}

/// Whether another program reads this output, which may use the same terminal.
fn is_piped(output: impl AsFd) -> bool {
    let output = output.as_fd().try_clone_to_owned().map(File::from);
    let kind = output.and_then(|output| output.metadata()).map(|output| output.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}
