//! Who may read from the terminal: the command, while it runs, if it was us before.

use std::fs::File;
use std::io::{self, IsTerminal, Stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::group::Place;
use crate::background::unstopped;

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
        let is_shared = leads_to_others(io::stdout()) || leads_to_others(io::stderr());
        if !terminal.is_terminal() || is_shared || tcgetpgrp(&terminal) != Ok(ours) {
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
        // From the background that asks for a stop. The terminal may be gone.
        unstopped(|| tcsetpgrp(&self.terminal, self.ours)).ok();
    }
}

/// Where the command stands whose terminal this is.
pub(super) fn place(foreground: Option<&Foreground>) -> Place {
    // Who has no terminal passes on what is usual: there may be others within.
    let is_in_terminal = || File::open("/dev/tty").is_ok();
    if foreground.is_none() && is_in_terminal() { Place::Back } else { Place::Front }
}

/// Whether another program reads there, which may have the same terminal.
fn leads_to_others(output: impl AsFd) -> bool {
    let output = output.as_fd().try_clone_to_owned().map(File::from);
    let kind = output.and_then(|output| output.metadata()).map(|output| output.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}
