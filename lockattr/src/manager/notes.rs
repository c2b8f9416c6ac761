//! The names of notes: locks that a manager keeps in the store beside those of the program, so that other
//! processes can read what a value of a lock cannot say.

/// The prefix of what a call waits for, before the name of a lock that it holds.
pub(super) const WAITS: &str = "lockattr:waits:";

/// The prefix of a leader's term, before the name of its lock.
pub(super) const TERMS: &str = "lockattr:term:";

/// The prefix of the result of a body, before the name of its lock.
pub(super) const RESULTS: &str = "lockattr:result:";

/// Whether a lock of this name is a note, and not a lock of the program.
pub(super) fn is_note(name: &str) -> bool {
    [WAITS, TERMS, RESULTS].iter().any(|prefix| name.starts_with(prefix))
}
