//! The exit codes, each once.

/// Done; for `who`, held; for `release`, the lock was taken.
pub(crate) const OK: u8 = 0;
/// Free.
pub(crate) const FREE: u8 = 1;
/// The arguments are invalid, or the store did not answer.
pub(crate) const ERROR: u8 = 2;
/// `release`: another holder has the lock by now, and keeps it.
pub(crate) const OTHER: u8 = 3;
/// `run`: the store could not be reached, so the command did not run, or its key may not be done
/// (`EX_UNAVAILABLE`).
pub(crate) const UNAVAILABLE: u8 = 69;
/// `run`: another holder has the lock, or the key is done, so the command did not run
/// (`EX_TEMPFAIL`).
pub(crate) const BUSY: u8 = 75;
/// `run`: the lease was lost, and the command was ended, or not started (`EX_PROTOCOL`).
pub(crate) const LOST: u8 = 76;
/// `run`: the command was found and could not be started, as in shells.
pub(crate) const CANNOT_RUN: u8 = 126;
/// `run`: the command was not found, as in shells.
pub(crate) const NOT_FOUND: u8 = 127;

/// A command that ended by a signal, as in shells.
pub(crate) fn by_signal(signal: i32) -> u8 {
    u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX)
}
