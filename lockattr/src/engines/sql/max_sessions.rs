//! The setting `max_sessions` of locks that belong to connections.

use crate::Error;
use crate::lock::settings::number;

/// Reads how many connections a store may open.
pub(in crate::engines) fn read_max_sessions(value: &str) -> Result<usize, Error> {
    check_max_sessions(number("max_sessions", value)?)
}

/// Returns the number, if a store may open so many connections.
pub(in crate::engines) fn check_max_sessions(most: usize) -> Result<usize, Error> {
    if !(1..=10_000).contains(&most) {
        return Err(Error::InvalidOptions("`max_sessions` must be 1 to 10000".into()));
    }
    Ok(most)
}
