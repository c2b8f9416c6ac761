//! `lockattr release`: takes a lock from its holder.

use clap::Args;
use lockattr::LockManager;

use crate::exit;
use crate::failure::{Failure, report};
use crate::output::Output;
use crate::who::description;

const AFTER: &str = "\
The holder is not notified. It continues until its next renewal reports the loss, after a third of the \
TTL at most, while the next waiter already has the lock: both run for that long, unless the resource \
that they write to checks fencing tokens. A shared lock is taken from all its holders, and a holder of \
several keys loses all of them.

Without --force nothing is changed: the command only prints the holder, and what to write.

Exit codes: 0 the lock was held; 1 it was free; 2 without --force, or the store did not answer or \
cannot release by force.

Example:
  lockattr who nightly
  lockattr release --force nightly";

/// Take a lock from its holder
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Release {
    /// The key, as the services write it, without the prefix
    key: String,
    /// Required to take the lock
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
            if holder.is_some() {
                // Without the key, which a shell might read in another way.
                report("to release it by force, repeat the command with `--force`");
            }
            return Ok(exit::ERROR);
        }
        let was_held = manager.force_release(&key).await?;
        let mut output = Output::new();
        match holder {
            _ if !was_held => output.line(&description(&key, None))?,
            Some(holder) => output.line(&format!("taken: `{key}` was held by {holder}"))?,
            // Another process acquired it in between.
            None => output.line(&format!("taken: `{key}`"))?,
        }
        output.finish()?;
        Ok(if was_held { exit::OK } else { exit::FREE })
    }
}
