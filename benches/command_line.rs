//! The command line, as a user or the program itself, when it starts itself again, passes it.

use std::time::Duration;

use crate::instructions::Counted;
use crate::rows::Row;

pub(crate) const USAGE: &str = "\
usage: cargo bench -p lockattr-benches [-- [row NAME]... [--seconds N] [--only ENGINE]]
rows: uncontended, keys, hot-key, processes, modes, growth, cores, wait, reentry, attribute, leases,
      quorum, postgres, mysql, zookeeper, etcd, storm, stalls, engines, recovery
--only: for the rows storm and stalls, such as `postgres`";

/// How long each way is measured in each row, over all rounds, by default.
const SECONDS: f64 = 2.0;

/// In less time a waiter that polls every 200 ms may acquire nothing.
const LEAST_SECONDS: f64 = 1.0;

pub(crate) struct CommandLine {
    pub(crate) mode: Mode,
    pub(crate) rows: Vec<Row>,
    pub(crate) seconds: Duration,
    /// The engine that rows about several engines are limited to.
    pub(crate) only: Option<String>,
}

pub(crate) enum Mode {
    /// The process that the user started.
    Rows,
    /// One process of a fleet, with its own arguments.
    Worker(Vec<String>),
    /// Ten thousand leases, in their own process, so that its memory can be measured.
    Leases { arrival: String },
    /// Holds a lock until it is killed.
    Hold { url: String, key: String },
    /// Shares results with other processes.
    Flight { url: String },
    /// Repeats the same work, for valgrind to count.
    Instructions { of: Counted, count: u64 },
}

impl CommandLine {
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        let (mode, rows, only) = (Mode::Rows, Vec::new(), None);
        let mut read = Self { mode, rows, seconds: seconds(SECONDS), only };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or(format!("`{word}` has no value"));
            match word.as_str() {
                // `cargo bench` passes this to every bench.
                "--bench" => {}
                "row" => read.rows.push(Row::named(next()?)?),
                "--seconds" => read.seconds = read_seconds(next()?)?,
                "--only" => read.only = Some(next()?.clone()),
                "worker" => read.mode = Mode::Worker(words.by_ref().cloned().collect()),
                "leases" => read.mode = Mode::Leases { arrival: next()?.clone() },
                "hold" => {
                    let url = value(next()?, "url")?;
                    let key = value(words.next().ok_or("`hold` names no key")?, "key")?;
                    read.mode = Mode::Hold { url, key };
                }
                "flight" => read.mode = Mode::Flight { url: value(next()?, "url")? },
                "instructions" => {
                    let name = next()?;
                    let count = next()?.parse().map_err(|_| "not a count".to_owned())?;
                    let url = words.next().map(|word| value(word, "url")).transpose()?;
                    let of = Counted::read(name, url)?;
                    read.mode = Mode::Instructions { of, count };
                }
                other => return Err(format!("`{other}` is unknown")),
            }
        }
        if read.rows.is_empty() {
            read.rows = Row::ALL.to_vec();
        }
        Ok(read)
    }
}

fn value(word: &str, name: &str) -> Result<String, String> {
    let value = word.strip_prefix(name).and_then(|word| word.strip_prefix('='));
    Ok(value.ok_or_else(|| format!("`{word}` is not {name}=…"))?.to_owned())
}

fn read_seconds(word: &str) -> Result<Duration, String> {
    match word.parse() {
        Ok(number) if (LEAST_SECONDS..=3600.0).contains(&number) => Ok(seconds(number)),
        _ => Err(format!("--seconds takes {LEAST_SECONDS} to 3600, and not `{word}`")),
    }
}

fn seconds(number: f64) -> Duration {
    Duration::from_secs_f64(number)
}
