//! `lockattr watch`: held locks, as they change.

mod changes;
mod screen;
mod stream;
mod summary;
mod view;

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use lockattr::LockManager;

use crate::failure::Failure;
use crate::pattern::Pattern;
use crate::sort::Sort;
use crate::{exit, span};

const AFTER: &str = "\
In a terminal, a view that refreshes. Keys: q or Ctrl-C ends it; up, down, PgUp, PgDn, Home and End \
move; s sorts by the next column, r reverses the order; / filters, by the same rule as PATTERN, Enter keeps \
the filter and Esc removes it.

Without a terminal, or with --json, one line for each change: held (already held at the beginning), \
acquired, handed off, done, released. With --json each is an object: at, event (held, acquired, handed_off, \
done, released), the fields of `ls --json` (of a released lock, as last seen), and previous, the holder \
before a hand-off. The end of the pipe's reader ends the command too, also while nothing changes.

The store is queried at intervals of --every, so shorter holds are not seen.

Exit codes: 0 ended by q or Ctrl-C; 2 the store did not answer at the beginning, or cannot list its \
locks. If it stops answering later, the view shows the error and retries.

Examples:
  lockattr watch
  lockattr watch --every 200ms 'order:*'
  lockattr watch --json | jq -r 'select(.event == \"handed_off\") | .key'";

/// Watch the held locks as they change
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Watch {
    /// Keys to watch: with `*` or `?` the whole key has to match, otherwise a part of it
    pattern: Option<Pattern>,
    /// The time between two queries
    #[arg(long, value_parser = every, default_value = "1s", value_name = "TIME")]
    every: Duration,
    /// The column to sort by
    #[arg(long, value_enum, default_value_t, value_name = "COLUMN")]
    sort: Sort,
    /// Print one JSON object for each change, on its own line
    #[arg(long)]
    json: bool,
}

impl Watch {
    pub(crate) async fn execute(self, manager: &LockManager, store: String) -> Result<u8, Failure> {
        let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        if self.json || !terminal {
            stream::run(manager, &self).await?;
        } else {
            screen::run(manager, self, store).await?;
        }
        Ok(exit::OK)
    }
}

/// Reads the interval, which has a minimum to limit the load on the store.
fn every(text: &str) -> Result<Duration, String> {
    let every = span::parse(text)?;
    if every < Duration::from_millis(50) {
        Err("at least 50ms are required".into())
    } else {
        Ok(every)
    }
}
