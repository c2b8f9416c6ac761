//! The requests for a session: in which order they are sent, and which of them share a statement.
//!
//! A claim that waits in the server's queue does so in a statement of its own session. That is no
//! request here: no other request could be answered meanwhile.

use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::super::failure::silent;
use super::Inner;
use super::session::Session;
use crate::engines::sql::{Execute, Request, Requests, Statement};
use crate::store::silence::unless_silent;
use crate::store::{Claim, StoreError};

/// A request to the server process that holds the locks of a session.
pub(super) enum SessionRequest {
    /// Which locks of a claim are held, and which of them others wait for.
    Check(Arc<Claim>),
    /// Releases these locks of a claim: one for each key whose entry is `true`.
    Unlock(Arc<Claim>, Option<Vec<bool>>),
    /// Tries to take all locks of a claim.
    Try(Arc<Claim>, Duration),
    /// Whether the session of this server process waits for the locks of a claim.
    QueueStatus(Arc<Claim>, i32),
    /// The holder of the lock of this name.
    Holder(String),
}

/// The reply to a request.
pub(super) enum SessionReply {
    /// For each lock, whether it is held, and whether others wait for it.
    Checked(Vec<bool>, Vec<bool>),
    /// Whether all locks were held.
    Unlocked(bool),
    Tried(Tried),
    QueueStatus(QueueRow),
    Holder(Option<HolderRow>),
}

/// The outcome of trying to take all locks of a claim.
pub(super) enum Tried {
    /// For each lock, whether it was taken; and the number of the acquisition if all were.
    Taken(Vec<bool>, Option<i64>),
    /// The server was not asked.
    Refused(StoreError),
}

/// The server's clock, whether the session waits, and a process that holds one of the locks.
pub(super) type QueueRow = (i64, bool, Option<i32>);

/// The server process of a holder, when it began, and the name and address of its client.
pub(super) type HolderRow = (i32, Option<String>, Option<String>, Option<String>);

impl Request for SessionRequest {
    type Reply = SessionReply;

    fn priority(&self) -> usize {
        match self {
            Self::Check(_) => 0,
            Self::Unlock(..) => 1,
            Self::Try(..) | Self::QueueStatus(..) | Self::Holder(_) => 2,
        }
    }

    fn joins(&self, others: &[Self]) -> bool {
        let alike = || others.first().is_some_and(|it| discriminant(self) == discriminant(it));
        matches!(self, Self::Check(_) | Self::Unlock(..) | Self::Try(..)) && alike()
    }

    fn outlives_caller(&self) -> bool {
        matches!(self, Self::Unlock(..))
    }
}

/// Executes requests over a session.
#[derive(Clone)]
struct Executor {
    inner: Arc<Inner>,
    session: Arc<Session>,
}

impl Execute<SessionRequest> for Executor {
    fn execute(&self, batch: Vec<SessionRequest>) -> Statement<SessionRequest> {
        let Self { inner, session } = self.clone();
        Box::pin(async move {
            let replies = session.execute(&inner, &batch).await;
            replies.map_err(|failure| failure.error)
        })
    }

    fn is_usable(&self) -> bool {
        !self.session.is_over()
    }

    fn runtime(&self) -> &Handle {
        &self.session.runtime
    }
}

/// The requests of a session.
pub(super) type SessionRequests = Arc<Requests<SessionRequest>>;

impl Inner {
    /// Sends a request over a session, and returns its reply.
    async fn ask(
        self: &Arc<Self>,
        on: &Arc<Session>,
        request: SessionRequest,
    ) -> Result<SessionReply, StoreError> {
        let executor = Executor { inner: self.clone(), session: on.clone() };
        self.unless_left(on, on.requests.run(&executor, request)).await?
    }

    /// The reply over a session. No thread may drive the runtime of another caller's session any
    /// more; then the session is closed.
    async fn unless_left<T>(
        &self,
        on: &Session,
        reply: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        if on.is_here() {
            return Ok(reply.await);
        }
        let limit = self.config.timing.response_timeout;
        let reply = unless_silent(&on.last_reply, limit, reply).await;
        reply.ok_or_else(|| {
            on.close();
            silent(&self.config).error
        })
    }

    /// Tries to take all locks of a claim.
    pub(super) async fn try_lock(
        self: &Arc<Self>,
        on: &Arc<Session>,
        claim: &Arc<Claim>,
        ttl: Duration,
    ) -> Result<Tried, StoreError> {
        match self.ask(on, SessionRequest::Try(claim.clone(), ttl)).await? {
            SessionReply::Tried(tried) => Ok(tried),
            _ => Err(unexpected_reply()),
        }
    }

    /// Releases the locks of a claim, and returns whether all were held. The first poll sends it, or
    /// puts it behind what was sent before.
    pub(super) async fn unlock(
        self: &Arc<Self>,
        on: &Arc<Session>,
        claim: &Arc<Claim>,
    ) -> Result<bool, StoreError> {
        self.unlock_some(on, claim, None).await
    }

    /// The same for some of the locks.
    pub(super) async fn unlock_some(
        self: &Arc<Self>,
        on: &Arc<Session>,
        claim: &Arc<Claim>,
        which: Option<Vec<bool>>,
    ) -> Result<bool, StoreError> {
        match self.ask(on, SessionRequest::Unlock(claim.clone(), which)).await? {
            SessionReply::Unlocked(held) => Ok(held),
            _ => Err(unexpected_reply()),
        }
    }

    /// For each claim, which of its locks are held, and which of them others wait for.
    pub(super) async fn check_all(
        self: &Arc<Self>,
        on: &Arc<Session>,
        claims: impl ExactSizeIterator<Item = &Arc<Claim>>,
    ) -> Vec<Result<(Vec<bool>, Vec<bool>), StoreError>> {
        let executor = Executor { inner: self.clone(), session: on.clone() };
        let count = claims.len();
        let checks = claims.map(|claim| SessionRequest::Check(claim.clone()));
        let replies = self.unless_left(on, on.requests.run_all(&executor, checks)).await;
        let replies =
            replies.unwrap_or_else(|error| (0..count).map(|_| Err(error.clone())).collect());
        let checked = replies.into_iter().map(|reply| match reply? {
            SessionReply::Checked(held, contended) => Ok((held, contended)),
            _ => Err(unexpected_reply()),
        });
        checked.collect()
    }

    pub(super) async fn queue_row(
        self: &Arc<Self>,
        on: &Arc<Session>,
        claim: &Arc<Claim>,
        pid: i32,
    ) -> Result<QueueRow, StoreError> {
        match self.ask(on, SessionRequest::QueueStatus(claim.clone(), pid)).await? {
            SessionReply::QueueStatus(row) => Ok(row),
            _ => Err(unexpected_reply()),
        }
    }

    pub(super) async fn holder_row(
        self: &Arc<Self>,
        on: &Arc<Session>,
        name: &str,
    ) -> Result<Option<HolderRow>, StoreError> {
        match self.ask(on, SessionRequest::Holder(name.to_owned())).await? {
            SessionReply::Holder(row) => Ok(row),
            _ => Err(unexpected_reply()),
        }
    }
}

fn unexpected_reply() -> StoreError {
    StoreError::new("the server's reply is not one to this request")
}
