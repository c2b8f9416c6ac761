//! What the addresses of a host said, as one error.

use std::fmt;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

/// The error of a step without an answer.
pub(in crate::engines) fn no_answer(limit: Duration) -> Error {
    Error::new(ErrorKind::TimedOut, format!("no answer within {limit:?}"))
}

/// Each address with its error.
#[derive(Debug)]
struct Refusals(Vec<(SocketAddr, Error)>);

/// The error of a host with these addresses.
pub(super) fn of(refusals: Vec<(SocketAddr, Error)>) -> Error {
    // An address that did not answer may do so yet; refusals are final.
    let kinds = || refusals.iter().map(|(_, error)| error.kind());
    let silent = kinds().find(|kind| *kind == ErrorKind::TimedOut);
    let kind = silent.or_else(|| kinds().next_back()).unwrap_or(ErrorKind::NotFound);
    Error::new(kind, Refusals(refusals))
}

impl std::error::Error for Refusals {}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (address, error)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{address}: {}", said(error))?;
        }
        Ok(())
    }
}

/// The plain words of the usual refusals, without the number that the system has for them.
fn said(error: &Error) -> String {
    match error.kind() {
        kind @ (ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::AddrNotAvailable) => kind.to_string(),
        _ => error.to_string(),
    }
}
