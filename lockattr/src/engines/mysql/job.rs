//! What callers want from a connection.

use std::borrow::Cow;
use std::sync::Arc;

use mysql_async::{Params, Row};
use tokio::sync::oneshot;

use super::acquiring::Acquiring;
use super::requests::{Kind, Request};
use crate::FencingToken;
use crate::store::{AcquireRequest, OwnerToken, ReleaseRequest, RenewRequest, StoreError};

pub(super) type Statement = (Cow<'static, str>, Params);

pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A statement that is sent by itself.
pub(super) struct Query {
    pub(super) statement: &'static str,
    pub(super) params: Params,
    /// What to do if the caller is gone or the connection breaks.
    pub(super) policy: SendPolicy,
    /// The claim for which it may acquire locks.
    pub(super) acquires: Option<OwnerToken>,
}

/// Whether a query is still sent when no caller waits for it, and what the answer to a repeated
/// query is worth, if the connection broke before the first answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SendPolicy {
    /// It is not sent. The second answer counts as the first would.
    IfAwaited,
    /// It is sent. If the second answer is no, the first query may have been executed: unknown.
    NoMeansUnknown,
}

impl Query {
    pub(super) fn read(statement: &'static str, params: impl Into<Params>) -> Self {
        let params = params.into();
        Self { statement, params, policy: SendPolicy::IfAwaited, acquires: None }
    }
}

/// A request for a claim, or a query, and where its answer goes.
pub(super) enum Job {
    Renew(RenewRequest, Reply<bool>),
    /// Releases the locks; with a plain statement first, if that is set.
    Release(ReleaseRequest, bool, Reply<bool>),
    /// Acquires the lock if it is free. Notifications go to this listener.
    Acquire(AcquireRequest, Arc<str>, Acquiring, Reply<Option<FencingToken>>),
    Query(Query, Option<Acquiring>, Reply<Vec<Row>>),
}

impl Job {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Renew(RenewRequest { claim, .. }, _)
            | Self::Release(ReleaseRequest { claim, .. }, ..)
            | Self::Acquire(AcquireRequest { claim, .. }, ..) => claim.key().name(),
            Self::Query(..) => "",
        }
    }

    pub(super) fn listener(&self) -> Option<Arc<str>> {
        match self {
            Self::Acquire(_, listener, ..) => Some(listener.clone()),
            _ => None,
        }
    }
}

impl Request for Job {
    fn kind(&self) -> Kind {
        match self {
            Self::Renew(..) => Kind::Renewal,
            Self::Release(..) => Kind::Release,
            Self::Acquire(..) => Kind::Acquire,
            Self::Query(..) => Kind::Single,
        }
    }

    fn undone_by(&self) -> Option<OwnerToken> {
        match self {
            Self::Acquire(_, _, acquiring, _) => Some(acquiring.token),
            Self::Query(_, acquiring, _) => acquiring.as_ref().map(|acquiring| acquiring.token),
            Self::Renew(..) | Self::Release(..) => None,
        }
    }

    fn releases(&self) -> Option<OwnerToken> {
        match self {
            Self::Release(release, ..) => Some(release.claim.token()),
            _ => None,
        }
    }

    fn is_abandoned(&self) -> bool {
        match self {
            Self::Acquire(.., reply) => reply.is_closed(),
            Self::Query(query, _, reply) => {
                query.policy == SendPolicy::IfAwaited && reply.is_closed()
            }
            Self::Renew(..) | Self::Release(..) => false,
        }
    }
}
