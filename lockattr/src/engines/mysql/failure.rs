//! What the client's errors mean for the store.

use mysql_async::Error;

use super::config::Config;
use super::connect::{self, error_from};
use super::requests::DatabaseReply;
use crate::store::StoreError;

/// The server chose this transaction as the victim of a deadlock.
const DEADLOCK_CODES: [u16; 2] = [1213, 1020];

/// It waited for a row for too long.
const TIMEOUT_CODE: u16 = 1205;

/// Why a statement has no reply.
pub(super) enum Failure {
    Error(Error),
    /// None came within the response timeout, counted from when it was sent: the connection serves
    /// one statement at a time, so what waits behind it is not the server's silence.
    Silence,
    /// A reply of another type than this request has.
    Unexpected(&'static str),
}

impl Failure {
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Self::Error(error) => connect::ends_connection(error),
            Self::Silence => true,
            Self::Unexpected(_) => false,
        }
    }

    pub(super) fn is_deadlock(&self) -> bool {
        matches!(self, Self::Error(Error::Server(error)) if DEADLOCK_CODES.contains(&error.code))
    }

    /// Whether another transaction is the reason.
    pub(super) fn is_conflict(&self) -> bool {
        let timed_out =
            matches!(self, Self::Error(Error::Server(error)) if error.code == TIMEOUT_CODE);
        timed_out || self.is_deadlock()
    }

    /// The reply to each of `count` requests of the statement.
    pub(super) fn replies(self, config: &Config, count: usize) -> Vec<DatabaseReply> {
        // The connection may have been dead for long without this process noticing.
        let is_broken = self.ends_connection() && !matches!(self, Self::Silence);
        let reply = if is_broken { DatabaseReply::Broken } else { DatabaseReply::Failed };
        let error = self.error(config);
        (0..count).map(|_| reply(error.clone())).collect()
    }

    pub(super) fn error(self, config: &Config) -> StoreError {
        let address = &config.address;
        match self {
            Self::Error(error) => error_from(address, error),
            Self::Silence => {
                let limit = config.timing.response_timeout;
                StoreError::new(format!("no answer from {address} within {limit:?}"))
            }
            Self::Unexpected(request) => unexpected_reply(request),
        }
    }
}

/// The reply has another type than replies to this request have.
pub(super) fn unexpected_reply(request: &str) -> StoreError {
    StoreError::new(format!("the server sent an unexpected reply to {request}"))
}
