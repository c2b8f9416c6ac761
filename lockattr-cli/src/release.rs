//! `lockattr release`: takes a lock from its holder, if that is still the one that was seen.

use std::time::SystemTime;

use clap::Args;
use lockattr::{Holder, HolderId, LockManager};

use crate::exit;
use crate::failure::{Failure, report};
use crate::output::Output;
use crate::who::{description, state};

const AFTER: &str = "\
The holder is not notified. It continues until its next renewal reports the loss, after a third of the \
TTL at most, while the next waiter already has the lock: both run for that long, unless the resource \
that they write to checks fencing tokens. Of the holders of a shared lock or of permits only this one loses it, and a \
holder of several keys loses all of them.

A key that is done is reopened: the next process that asks for it does the work again.

Without --force nothing is changed: the command only prints the holder, and what to write. With --holder \
the lock is taken from no other holder. With --force alone it is taken from the holder that the \
command has just read, and from none that came in between.

Exit codes: 0 the lock was taken, or the key reopened; 1 it was free; 2 without --force, or the store did not answer or \
cannot release by force; 3 another holder has it by now, and keeps it.

Example:
  lockattr release nightly
  lockattr release --force --holder 5baa61e4c9b93f3f nightly";

/// Take a lock from its holder, or reopen a key that is done
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Release {
    /// The key, as the services write it, without the prefix
    key: String,
    /// Required to take the lock or to reopen the key
    #[arg(long)]
    force: bool,
    /// Take it from this holder only: the id that the command prints without --force
    #[arg(long, value_name = "ID", requires = "force")]
    holder: Option<HolderId>,
}

impl Release {
    pub(crate) async fn execute(self, manager: &LockManager) -> Result<u8, Failure> {
        let Self { key, force, holder: named } = self;
        let seen = manager.holder(&key).await?;
        if !force {
            report(&description(&key, seen.as_ref()));
            if let Some(holder) = seen {
                report(&advice(&key, &holder));
            }
            return Ok(exit::ERROR);
        }
        // A lock without a known holder is asked for too: the store may say what to do instead.
        let id = named.or(seen.as_ref().map(|holder| holder.id)).unwrap_or_default();
        let was_taken = manager.force_release(&key, &id).await?;
        let mut output = Output::new();
        let code = if was_taken {
            output.line(&taken(&key, seen.filter(|holder| holder.id == id).as_ref()))?;
            exit::OK
        } else {
            let by_now = manager.holder(&key).await?;
            let not = if by_now.is_some() { "not taken: " } else { "" };
            output.line(&format!("{not}{}", description(&key, by_now.as_ref())))?;
            if by_now.is_some() { exit::OTHER } else { exit::FREE }
        };
        output.finish()?;
        Ok(code)
    }
}

/// The command that takes the lock from this holder.
fn advice(key: &str, holder: &Holder) -> String {
    let done = if holder.done { "reopen" } else { "release" };
    // A shell might read other keys in another way.
    let plain = |it: char| it.is_ascii_alphanumeric() || ":._/@+,-".contains(it);
    let is_plain = !key.starts_with('-') && key.chars().all(plain);
    let (id, key) = (holder.id, if is_plain { key } else { "KEY" });
    format!("to {done} it by force: `lockattr release --force --holder {id} {key}`")
}

/// What was taken; of a shared lock, the holder may not be the one that was read.
fn taken(key: &str, holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) => {
            let done = if holder.done { "reopened" } else { "taken" };
            format!("{done}: `{key}` was {}", state(holder, SystemTime::now()))
        }
        None => format!("taken: `{key}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: `is_plain`.
    #[test]
    fn the_command_to_write_has_the_key_unless_a_shell_reads_it_in_another_way() {
        let holder = Holder::from_value("0 service=x", None);
        let id = holder.id;
        for (key, written) in [("a:1/b", "a:1/b"), ("a b", "KEY"), ("$(x)", "KEY"), ("-f", "KEY")] {
            let expected = format!(
                "to release it by force: `lockattr release --force --holder {id} {written}`"
            );
            assert_eq!(advice(key, &holder), expected);
        }
    }
}
