//! What a member answered instead of an answer, and what that says about the request.

use tonic::{Code, Status};

use crate::store::StoreError;

/// A request that failed, or of which it is unknown what came.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) error: StoreError,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It did not leave this process.
    NotSent,
    /// The servers would not do it, and have done nothing.
    Refused,
    /// The same, because they do not know our token any more: tokens end by time, and with a member.
    BadToken,
    /// The same, because there is no such lease any more.
    NoLease,
    /// It is unknown what became of it.
    Unknown,
}

impl Failure {
    pub(super) fn not_sent(error: StoreError) -> Self {
        Self { error: error.not_sent(), kind: Kind::NotSent }
    }

    pub(super) fn unknown(sentence: String) -> Self {
        Self { error: StoreError::new(sentence), kind: Kind::Unknown }
    }

    /// What the member at `address` said.
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
            // The way there, or a member without a leader: an election, a restart.
            _ => Kind::Unknown,
        };
        // The way there says what was wrong in its causes only.
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

/// The last of the causes, which says most.
pub(super) fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

/// The code alone: a status carries metadata too.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct StatusCode(Code);
