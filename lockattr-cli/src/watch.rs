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
move; s sorts by the next column, r the other way round; / filters, by the same rule as PATTERN, Enter \
keeps the filter and Esc drops it.

Without a terminal, or with --json, a line for each change: held (what was there at the beginning), \
taken, handed_over, released. With --json each is an object: at, event, what `ls --json` says of the \
lock (of a released one, as it was seen last), and previous, the holder before a hand-over.

The store is asked each --every, so what is shorter than that is not seen.

Exit codes: 0 ended by q or Ctrl-C; 2 the store did not answer at the beginning, or cannot list its \
locks. If it stops answering later, the view says so and goes on.

Examples:
  lockattr watch
  lockattr watch --every 200ms 'order:*'
  lockattr watch --json | jq -r 'select(.event == \"handed_over\") | .key'";

/// Watch what is held, as it changes
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Watch {
    /// Keys to watch: with `*` or `?` the whole key has to match, else a part of it
    pattern: Option<Pattern>,
    /// From one look to the next
    #[arg(long, value_parser = every, default_value = "1s", value_name = "TIME")]
    every: Duration,
    /// What stands first
    #[arg(long, value_enum, default_value_t, value_name = "COLUMN")]
    sort: Sort,
    /// A line for each change, as JSON
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
    if every < Duration::from_millis(50) { Err("50ms is the least".into()) } else { Ok(every) }
}
