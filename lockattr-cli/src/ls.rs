//! `lockattr ls`: a table of the held locks.

use std::time::SystemTime;

use clap::Args;
use lockattr::{HeldLocks, LockManager};

use crate::columns::{Cells, Columns};
use crate::exit;
use crate::failure::{Failure, report};
use crate::output::{self, Output};
use crate::pattern::Pattern;
use crate::row::Row;
use crate::sort::Sort;

const AFTER: &str = "\
Columns: KEY; HOLDER as service@host:process, with (+2) if two more share the lock; FUNCTION that \
acquired it; AGE of the hold by the holder's clock; REMAINING time of the lease without a renewal, \
or `done until` a time in UTC if the key is done: then it is held so that no other process repeats the \
work; WAITING, the number of processes in the lock's queue; FENCE, the fencing token, if the store keeps it \
with the lock.

With --json each line is an object: key, holder {id, service, host, process, function}, holders, shared, \
done, since (RFC 3339), remaining_ms (null: the lease never ends), waiting, fencing_token (as text: it has \
more than 53 bits). Unknown values are null.

Any program may write keys and labels: characters that would move other text are shown as `�`, and with \
--json as escapes such as \\u202e. Names that no key can have are left out; their number is on stderr.

Exit codes: 0 listed, even if no lock is held; 2 the store did not answer, or cannot list its locks.

Examples:
  lockattr ls 'product:*'
  lockattr ls --sort waiting | head
  lockattr ls --json | jq -r 'select(.waiting > 10) | .key'";

/// List held locks
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Ls {
    /// Keys to list: with `*` or `?` the whole key has to match, otherwise a part of it
    pattern: Option<Pattern>,
    /// The column to sort by
    #[arg(long, value_enum, default_value_t, value_name = "COLUMN")]
    sort: Sort,
    /// Print one JSON object for each lock, on its own line
    #[arg(long)]
    json: bool,
}

impl Ls {
    pub(crate) async fn execute(self, manager: &LockManager) -> Result<u8, Failure> {
        let Matching { mut rows, left_out } = matching(manager, self.pattern.as_ref()).await?;
        self.sort.apply(&mut rows);
        let mut output = Output::new();
        if self.json {
            for row in &rows {
                output.json(row)?;
            }
        } else {
            let now = SystemTime::now();
            let cells: Vec<_> = rows.iter().map(|row| Cells::new(row, now)).collect();
            let columns = Columns::fit(&cells, output::width());
            output.line(&columns.head())?;
            for row in &cells {
                output.line(&columns.line(row))?;
            }
        }
        output.finish()?;
        if let Some(notice) = notice(left_out) {
            // Not on stdout, where each line is a lock.
            report(&notice);
        }
        Ok(exit::OK)
    }
}

/// Held locks, and how many names cannot be listed.
pub(crate) struct Matching {
    pub(crate) rows: Vec<Row>,
    left_out: u64,
}

/// The locks that are held now, sorted by key.
pub(crate) async fn matching(
    manager: &LockManager,
    pattern: Option<&Pattern>,
) -> Result<Matching, lockattr::Error> {
    let HeldLocks { locks, left_out, .. } = manager.list_held_locks().await?;
    let selected = locks.into_iter().filter(|lock| pattern.is_none_or(|it| it.matches(&lock.key)));
    Ok(Matching { rows: selected.map(Row::from).collect(), left_out })
}

/// The line about names that are left out, if there are any.
fn notice(left_out: u64) -> Option<String> {
    let names = match left_out {
        0 => return None,
        1 => "1 name under the prefix is",
        _ => &format!("{left_out} names under the prefix are"),
    };
    Some(format!("{names} left out: not UTF-8, or longer than 1024 bytes, so no key of a lock"))
}
