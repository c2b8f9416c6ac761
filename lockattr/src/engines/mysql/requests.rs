//! The requests of a store: in which order they are sent, and which of them share a statement.

use std::mem::discriminant;
use std::sync::Arc;

use mysql_async::{Params, Row};

use crate::FencingToken;
use crate::engines::sql::Request;
use crate::store::{AcquireRequest, Claim, ReleaseRequest, RenewRequest, StoreError};

/// Most releases of one statement that a procedure executes. Each has a commit of its own, and all of
/// them must be executed within the response timeout.
const MAX_COMMITS: usize = 8;

/// A request to the database.
#[derive(Clone)]
pub(super) enum DatabaseRequest {
    /// Acquires a lock, which is exclusive and single, if it has no row. Notifications for its holder
    /// go to this listener.
    Insert(AcquireRequest, Arc<str>),
    /// Acquires any lock, or waits for it.
    Acquire(AcquireRequest, Arc<str>),
    /// Releases the locks; with a plain statement first, if that is set.
    Release(ReleaseRequest, bool),
    Renew(RenewRequest),
    /// A statement of its own. If `is_write`, it is sent although its caller has gone.
    Query {
        statement: &'static str,
        params: Params,
        is_write: bool,
    },
    /// Checks that the server still answers, and deletes some rows of what has ended if that is due.
    Sweep,
}

impl DatabaseRequest {
    pub(super) fn read(statement: &'static str, params: impl Into<Params>) -> Self {
        Self::Query { statement, params: params.into(), is_write: false }
    }

    /// The claim that sends the request.
    pub(super) fn claim(&self) -> Option<&Arc<Claim>> {
        match self {
            Self::Insert(AcquireRequest { claim, .. }, _)
            | Self::Acquire(AcquireRequest { claim, .. }, _)
            | Self::Release(ReleaseRequest { claim, .. }, _)
            | Self::Renew(RenewRequest { claim, .. }) => Some(claim),
            Self::Query { .. } | Self::Sweep => None,
        }
    }

    /// The claim for which it may acquire locks.
    pub(super) fn acquires(&self) -> Option<&Arc<Claim>> {
        match self {
            Self::Insert(AcquireRequest { claim, .. }, _)
            | Self::Acquire(AcquireRequest { claim, .. }, _) => Some(claim),
            _ => None,
        }
    }

    /// The name of its first lock.
    pub(super) fn name(&self) -> &str {
        self.claim().map_or("", |claim| claim.key().name())
    }
}

impl Request for DatabaseRequest {
    type Reply = DatabaseReply;

    fn priority(&self) -> usize {
        match self {
            Self::Renew(_) => 0,
            Self::Release(..) => 1,
            _ => 2,
        }
    }

    fn joins(&self, others: &[Self]) -> bool {
        let commits = || others.iter().filter(|it| matches!(it, Self::Release(_, false))).count();
        let fits = match self {
            Self::Insert(..) | Self::Release(_, true) | Self::Renew(_) => true,
            Self::Release(_, false) => commits() < MAX_COMMITS,
            _ => false,
        };
        fits && others.first().is_some_and(|it| discriminant(self) == discriminant(it))
    }

    fn outlives_caller(&self) -> bool {
        match self {
            Self::Renew(_) | Self::Release(..) => true,
            Self::Query { is_write, .. } => *is_write,
            Self::Insert(..) | Self::Acquire(..) | Self::Sweep => false,
        }
    }
}

/// The reply to a request.
pub(super) enum DatabaseReply {
    /// The number of an acquisition; `None` if the lock has a row.
    Inserted(Option<FencingToken>),
    /// Whether the claim held all its locks.
    Held(bool),
    Rows(Vec<Row>),
    /// Whether a sweep has more rows to read.
    Swept(bool),
    /// The server refused the request, or was silent.
    Failed(StoreError),
    /// The connection ended with this error. The request may have been executed, and can be
    /// repeated over another connection.
    Broken(StoreError),
}

impl DatabaseReply {
    /// The same, as the reply to a repeated request, if the first attempt failed like this: it may have
    /// been executed.
    pub(super) fn after(self, first: Option<StoreError>) -> Result<Self, StoreError> {
        match (self, first) {
            (Self::Held(false), Some(error)) => Err(error),
            (reply, _) => Ok(reply),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LockKey;

    /// Red without: `MAX_COMMITS`.
    #[test]
    fn few_releases_with_a_commit_each_share_a_statement() {
        let claim = Arc::new(Claim::new(LockKey::new("", "a").unwrap(), ""));
        let release = |plain| DatabaseRequest::Release(ReleaseRequest::new(claim.clone()), plain);
        let mut batch = vec![release(true); 20];
        assert!(release(true).joins(&batch));
        while release(false).joins(&batch) {
            batch.push(release(false));
        }
        assert_eq!(batch.len(), 20 + MAX_COMMITS);
        assert!(release(true).joins(&batch));
    }
}
