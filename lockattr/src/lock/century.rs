//! The longest time that counts: what a program, a URL or a store asks for beyond it is cut off there.

use std::time::Duration;

/// No program waits that long, and a sum of several overflows neither a clock nor a number of a server.
pub(crate) const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// `time`, or a century if it is longer. Every time without a bound of its own passes this where it is set, so that
/// `Duration::MAX` means "without a bound", and no later sum has to be checked.
pub(crate) const fn at_most_a_century(time: Duration) -> Duration {
    if time.as_secs() < CENTURY.as_secs() { time } else { CENTURY }
}
