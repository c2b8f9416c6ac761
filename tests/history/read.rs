//! Reads a history from its file.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::Event;

/// Returns the events of a file, sorted by time.
///
/// # Errors
///
/// If the file cannot be read, or a line before the last is not an event. The last line may be
/// incomplete, because its process was killed.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<Event>> {
    let mut lines = BufReader::new(File::open(path)?).lines().peekable();
    let mut events = Vec::new();
    while let Some(line) = lines.next() {
        match serde_json::from_str::<Event>(&line?) {
            Ok(event) => events.push(event),
            Err(_) if lines.peek().is_none() => {}
            Err(error) => return Err(error.into()),
        }
    }
    events.sort_by_key(|event| event.at);
    Ok(events)
}
