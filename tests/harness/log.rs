//! The part of a server's log that an error message shows.

/// How many lines an error message shows.
const LINES: usize = 15;

/// Returns the last lines of a log.
pub(crate) fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
