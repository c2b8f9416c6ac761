//! `lockattr release`: a lock taken from its holder.

use clap::Args;
use lockattr::LockManager;

use crate::exit;
use crate::failure::{Failure, tell};
use crate::output::Output;
use crate::who::sentence;

const AFTER: &str = "\
The holder is not asked. It goes on until its next renewal tells it that it lost the lease, a third of \
the TTL later at most, while the next in line has the lock already: both work for that long, unless \
what they write to checks fencing tokens. A shared lock is taken from all who share it, and a holder of \
several keys loses all of them.

Without --force nothing is done: it says who has the lock, and what to write.

Exit codes: 0 somebody had it; 1 nobody had it; 2 without --force, or the store did not answer or \
cannot do it.

Example:
  lockattr who nightly
  lockattr release --force nightly";

/// Take a lock from its holder
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Release {
    /// The key, as the services write it, without the prefix
    key: String,
    /// Yes, take it
    #[arg(long)]
    force: bool,
}

impl Release {
    pub(crate) async fn execute(self, manager: &LockManager) -> Result<u8, Failure> {
        let Self { key, force } = self;
        let holder = manager.holder(&key).await?;
        let told = sentence(&key, holder.as_ref());
        if !force {
            tell(&told);
            if holder.is_some() {
                tell(&format!("to take it from there, write `lockattr release --force {key}`"));
            }
            return Ok(exit::ERROR);
        }
        let had = manager.force_release(&key).await?;
        let mut output = Output::new();
        match holder {
            _ if !had => output.line(&sentence(&key, None))?,
            Some(holder) => output.line(&format!("taken: `{key}` was held by {holder}"))?,
            // Another process took it in between.
            None => output.line(&format!("taken: `{key}`"))?,
        }
        output.finish()?;
        Ok(if had { exit::OK } else { exit::FREE })
    }
}
