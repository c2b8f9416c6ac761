//! The process beside the command: it ends the command's group if `lockattr run` is killed.
//!
//! However that ends, the system closes its end of our stdin. That needs nothing of the system but
//! pipes and groups, and reaches grandchildren, which a signal for a parent's death does not.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{getpgrp, getpid};
use tokio::io::AsyncReadExt;

use super::signals::Signals;
use crate::failure::{Failure, tell};
use crate::{exit, span};

/// Leads the group that the command is put into, so that there is no moment in which it does not know
/// it.
#[derive(Debug, Args)]
pub(crate) struct Leash {
    /// From SIGTERM to SIGKILL
    #[arg(long, value_parser = span::parse)]
    kill_after: Duration,
}

impl Leash {
    pub(crate) async fn execute(self) -> Result<u8, Failure> {
        if getpgrp() != getpid() {
            let sentence = "`leash` is for `lockattr run`, which gives it a group of its own";
            return Err(Failure::new(exit::ERROR, sentence));
        }
        // It survives all that is sent to the group, but SIGKILL.
        let mut meant_for_the_command = Signals::new()?;
        let mut suspended = Signals::of(&[Signal::SIGTSTP])?;
        // The command can be started now.
        std::io::stdout().write_all(b".")?;
        std::io::stdout().flush()?;
        let mut stdin = tokio::io::stdin();
        loop {
            tokio::select! {
                // Nothing is ever written there.
                _end = stdin.read_u8() => break,
                _ = meant_for_the_command.next() => {}
                _ = suspended.next() => {
                    tell("not suspended: the command holds a lock, and its lease does not wait");
                    signal_all(Signal::SIGCONT);
                }
            }
        }
        tell("`lockattr run` is gone: its command is ended as well");
        signal_all(Signal::SIGTERM);
        // One that stands still would not hear it.
        signal_all(Signal::SIGCONT);
        tokio::time::sleep(self.kill_after).await;
        // This one as well.
        signal_all(Signal::SIGKILL);
        Ok(exit::OK)
    }
}

fn signal_all(signal: Signal) {
    // A group has at least its own leader.
    killpg(getpgrp(), signal).ok();
}
