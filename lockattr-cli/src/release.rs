//! `lockattr release`: takes a lock from its holder.

use std::time::SystemTime;

use clap::Args;
use lockattr::LockManager;

use crate::exit;
use crate::failure::{Failure, report};
use crate::output::Output;
use crate::who::{description, state};

const AFTER: &str = "\
The holder is not notified. It continues until its next renewal reports the loss, after a third of the \
TTL at most, while the next waiter already has the lock: both run for that long, unless the resource \
that they write to checks fencing tokens. A shared lock is taken from all its holders, and a holder of \
several keys loses all of them.

A key that is done is reopened: the next process that asks for it does the work again.

Without --force nothing is changed: the command only prints the holder, and what to write.

Exit codes: 0 the lock was held, or the key was done; 1 it was free; 2 without --force, or the store did not answer or \
cannot release by force.

Example:
  lockattr who nightly
  lockattr release --force nightly";

/// Take a lock from its holder, or reopen a key that is done
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Release {
    /// The key, as the services write it, without the prefix
    key: String,
    /// Required to take the lock or to reopen the key
    #[arg(long)]
    force: bool,
}

impl Release {
    pub(crate) async fn execute(self, manager: &LockManager) -> Result<u8, Failure> {
        let Self { key, force } = self;
        let holder = manager.holder(&key).await?;
        let status = description(&key, holder.as_ref());
        if !force {
            report(&status);
            // Without the key, which a shell might read in another way.
            match holder {
                Some(holder) if holder.done => {
                    report("to reopen it, repeat the command with `--force`");
                }
                Some(_) => report("to release it by force, repeat the command with `--force`"),
                None => {}
            }
            return Ok(exit::ERROR);
        }
        let was_held = manager.force_release(&key).await?;
        let mut output = Output::new();
        match holder {
            _ if !was_held => output.line(&description(&key, None))?,
            Some(holder) => {
                let done = if holder.done { "reopened" } else { "taken" };
                let state = state(&holder, SystemTime::now());
                output.line(&format!("{done}: `{key}` was {state}"))?;
            }
            // Another process acquired it in between.
            None => output.line(&format!("taken: `{key}`"))?,
        }
        output.finish()?;
        Ok(if was_held { exit::OK } else { exit::FREE })
    }
}
