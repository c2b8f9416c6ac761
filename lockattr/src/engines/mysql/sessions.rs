//! Locks that belong to connections (`GET_LOCK`): each has its own connection, and ends with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Error, ServerError};
use tokio::runtime::{self, Handle};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::config::Config;
use super::connect::{Live, error_from};
use super::session::{Command, Session};
use crate::Holder;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::{
    AcquireOutcome, AcquireRequest, LockKey, OwnerToken, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, StoreError, Subscriber, Subscribers,
};

/// Queries which connection holds a lock.
const LOCK_CONNECTION: &str = "SELECT IS_USED_LOCK(CONCAT('lockattr:lock:', \
                     LEFT(SHA2(CONCAT(DATABASE(), '/', ?), 256), 50)))";

/// The server's error codes for a connection that is gone, and for one of another user.
const NO_SUCH_THREAD: u16 = 1094;
const NOT_OWNER: u16 = 1095;

/// Sends commands to the task that owns a claim's connection.
type SessionHandle = UnboundedSender<Command>;

/// All sessions of a store: holders, waiters and idle ones.
pub(super) struct Sessions {
    pub(super) config: Arc<Config>,
    pub(super) subscribers: Subscribers,
    by_token: Mutex<HashMap<OwnerToken, SessionHandle>>,
    /// By runtime, because a connection dies with the runtime that made it.
    idle: Mutex<Vec<(runtime::Id, SessionHandle)>>,
}

impl Sessions {
    pub(super) fn new(config: Arc<Config>) -> Arc<Self> {
        let (subscribers, by_token, idle) = Default::default();
        Arc::new(Self { config, subscribers, by_token, idle })
    }

    pub(super) fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.subscribers.add(subscriber);
    }

    pub(super) async fn acquire(
        self: &Arc<Self>,
        request: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let token = request.claim.token();
        let session = match self.session_of(token) {
            Some(session) => session,
            None => self.begin(token)?,
        };
        let (reply, response) = oneshot::channel();
        let (request, handle) = (request.clone(), session.clone());
        let _ended = session.send(Command::Acquire { request, handle, reply });
        drop(session);
        let limit = self.config.timing.connect_timeout + self.config.timing.response_timeout;
        self.await_response(response, limit).await.unwrap_or_else(|| Err(self.no_reply(limit)))
    }

    pub(super) async fn renew(&self, renewal: &RenewRequest) -> Result<RenewOutcome, StoreError> {
        // Without its connection, the lock is lost.
        let token = renewal.claim.token();
        let Some(session) = self.session_of(token) else { return Ok(RenewOutcome::NotHeld) };
        let (reply, response) = oneshot::channel();
        let _ended = session.send(Command::Renew { token, ttl: renewal.ttl, reply });
        let limit = self.config.timing.response_timeout;
        match timeout(limit, response).await {
            Ok(outcome) => Ok(outcome.unwrap_or(RenewOutcome::NotHeld)),
            Err(_) => Err(self.no_reply(limit)),
        }
    }

    pub(super) async fn release(
        &self,
        release: &ReleaseRequest,
    ) -> Result<ReleaseOutcome, StoreError> {
        let token = release.claim.token();
        let Some(session) = self.session_of(token) else { return Ok(ReleaseOutcome::NotHeld) };
        let (reply, response) = oneshot::channel();
        let handle = session.clone();
        let _ended = session.send(Command::Release { token, after: release.after, handle, reply });
        drop(session);
        let limit = self.config.timing.response_timeout;
        match timeout(limit, response).await {
            Ok(outcome) => Ok(outcome.unwrap_or(ReleaseOutcome::NotHeld)),
            Err(_) => Err(self.no_reply(limit)),
        }
    }

    /// Whether the lock is held: the server reports only the connection that holds it.
    pub(super) async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let mut live = Live::connect(&self.config).await?;
        let query = live.connection.exec_first::<Option<u64>, _, _>(LOCK_CONNECTION, (key.name(),));
        let limit = self.config.timing.response_timeout;
        let found = match timeout(limit, query).await {
            Ok(found) => found.map_err(|error| error_from(&self.config.address, error)),
            Err(_) => Err(self.no_reply(limit)),
        };
        live.abandon();
        Ok(found?.flatten().map(|_| Holder::default()))
    }

    /// Ends the connection that holds the lock. Other locks are safe: each has its own connection.
    pub(super) async fn force_release(&self, key: &LockKey) -> Result<bool, StoreError> {
        let mut live = Live::connect(&self.config).await?;
        let query = async {
            let id: Option<Option<u64>> =
                live.connection.exec_first(LOCK_CONNECTION, (key.name(),)).await?;
            let Some(id) = id.flatten() else { return Ok(None) };
            Ok(Some((id, live.connection.query_drop(format!("KILL {id}")).await)))
        };
        let limit = self.config.timing.response_timeout;
        let killed: Result<_, Error> = match timeout(limit, query).await {
            Ok(killed) => killed,
            Err(_) => {
                live.abandon();
                return Err(self.no_reply(limit));
            }
        };
        live.abandon();
        let failed = |error| error_from(&self.config.address, error);
        match killed.map_err(failed)? {
            None => Ok(false),
            // The connection has ended meanwhile.
            Some((_, Ok(()) | Err(Error::Server(ServerError { code: NO_SUCH_THREAD, .. })))) => {
                Ok(true)
            }
            Some((id, Err(Error::Server(ServerError { code: NOT_OWNER, .. })))) => {
                let sentence = format!(
                    "{}: a connection of another user holds the lock: end it as a user with the right to, \
                     with `KILL {id}`",
                    self.config.address
                );
                Err(StoreError::new(sentence).not_sent())
            }
            Some((_, Err(error))) => Err(failed(error)),
        }
    }

    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        Live::connect(&self.config).await.map(|live| drop(live.abandon()))
    }

    /// Ends a claim. Its connection may serve another one, or has ended.
    pub(super) fn ended(&self, token: OwnerToken, handle: Option<(runtime::Id, SessionHandle)>) {
        {
            let mut tokens = self.tokens();
            // The claim may have another session by now, which is not over.
            let ended = tokens.get(&token).is_some_and(|session| match &handle {
                Some((_, handle)) => session.same_channel(handle),
                None => session.is_closed(),
            });
            if ended {
                tokens.remove(&token);
            }
        }
        let mut idle = self.idle();
        idle.retain(|(_, session)| !session.is_closed());
        if let Some((runtime, session)) = handle {
            let others = idle.iter().filter(|(of, _)| *of == runtime).count();
            // Otherwise the session ends, because no sender of commands is left.
            if others < self.config.timing.connections() {
                idle.push((runtime, session));
            }
        }
    }

    /// Whether this session is the claim's.
    pub(super) fn is_session_of(&self, token: OwnerToken, session: &SessionHandle) -> bool {
        self.tokens().get(&token).is_some_and(|of| of.same_channel(session))
    }

    /// The session of a claim, if it still has one.
    fn session_of(&self, token: OwnerToken) -> Option<SessionHandle> {
        let mut tokens = self.tokens();
        let session = tokens.get(&token)?;
        if session.is_closed() {
            tokens.remove(&token);
            return None;
        }
        Some(session.clone())
    }

    /// A session for this claim: an idle one, or one that connects.
    fn begin(self: &Arc<Self>, token: OwnerToken) -> Result<SessionHandle, StoreError> {
        let runtime = Handle::try_current().map_err(|_| {
            StoreError::new("this store can only be used inside a tokio runtime").not_sent()
        })?;
        let idle = {
            let mut idle = self.idle();
            idle.retain(|(_, session)| !session.is_closed());
            let found = idle.iter().rposition(|(of, _)| *of == runtime.id());
            found.map(|found| idle.swap_remove(found).1)
        };
        let session = idle.unwrap_or_else(|| {
            let (session, commands) = unbounded_channel();
            runtime.spawn(Session::new(self, runtime.id()).run(commands));
            session
        });
        self.tokens().insert(token, session.clone());
        Ok(session)
    }

    async fn await_response<T>(
        &self,
        response: oneshot::Receiver<Result<T, StoreError>>,
        limit: Duration,
    ) -> Option<Result<T, StoreError>> {
        let ended = || StoreError::new("the connection that was to hold the lock has ended");
        Some(timeout(limit, response).await.ok()?.unwrap_or_else(|_| Err(ended())))
    }

    fn no_reply(&self, limit: Duration) -> StoreError {
        StoreError::new(format!("no answer from {} within {limit:?}", self.config.address))
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<OwnerToken, SessionHandle>> {
        self.by_token.lock()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(runtime::Id, SessionHandle)>> {
        self.idle.lock()
    }
}
