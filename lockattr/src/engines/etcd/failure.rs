//! An error that a member replied, and what it means for the request.

use tonic::{Code, Status};

use crate::store::StoreError;

/// A request that failed, or whose outcome is unknown.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) error: StoreError,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It was not sent.
    NotSent,
    /// The servers refused it, and did nothing.
    Refused,
    /// The same, because they no longer accept the token: tokens expire, and end with a member.
    BadToken,
    /// The same, because the lease no longer exists.
    NoLease,
    /// The outcome is unknown.
    Unknown,
}

impl Failure {
    pub(super) fn not_sent(error: StoreError) -> Self {
        Self { error: error.not_sent(), kind: Kind::NotSent }
    }

    pub(super) fn unknown(sentence: String) -> Self {
        Self { error: StoreError::new(sentence), kind: Kind::Unknown }
    }

    /// Reads the error that the member at `address` replied.
    pub(super) fn from_status(address: &str, status: &Status) -> Self {
        let message = status.message();
        let kind = match status.code() {
            Code::Unauthenticated => Kind::BadToken,
            Code::InvalidArgument if message.contains("revision of auth store is old") => {
                Kind::BadToken
            }
            Code::NotFound if message.contains("lease not found") => Kind::NoLease,
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented => Kind::Refused,
            // The connection failed, or the member has no leader: an election, a restart.
            _ => Kind::Unknown,
        };
        // A connection error names its reason only in its causes.
        let cause = std::error::Error::source(status).map(root).filter(|cause| cause != message);
        let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        let mut sentence = format!("{address}: {message}{cause}");
        if status.code() == Code::InvalidArgument && message.contains("user name is empty") {
            sentence.push_str(": name one, as in `etcd://user:password@host/`");
        }
        let error = StoreError::new(sentence);
        Self { error: error.with_source(StatusCode(status.code())), kind }
    }
}

/// Returns the innermost cause, which says most.
pub(super) fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

/// Only the code, because a status carries metadata too.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct StatusCode(Code);
