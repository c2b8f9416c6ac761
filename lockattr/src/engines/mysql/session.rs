//! The task that owns one connection, which holds the lock of one claim after another.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::config::{Config, idle_seconds};
use super::connect::{Live, abandon, error_from};
use super::sessions::Sessions;
use crate::FencingToken;
use crate::store::{
    AcquireOutcome, AcquireRequest, Grant, MAX_RECHECK, OwnerToken, ReleaseOutcome, RenewOutcome,
    StoreError, Waiting,
};

/// Practically without limit: the waiter gives up earlier.
const WAIT_SECONDS: i64 = 31_536_000;

/// A command to a session. It names its claim, because the session may serve another one by then.
pub(super) enum Command {
    Acquire {
        request: AcquireRequest,
        handle: UnboundedSender<Command>,
        reply: oneshot::Sender<Result<AcquireOutcome, StoreError>>,
    },
    Renew {
        token: OwnerToken,
        ttl: Duration,
        reply: oneshot::Sender<RenewOutcome>,
    },
    Release {
        token: OwnerToken,
        after: Duration,
        handle: UnboundedSender<Command>,
        reply: oneshot::Sender<ReleaseOutcome>,
    },
}

/// One connection's task. When no sender of commands is left, it ends, and its lock with it.
pub(super) struct Session {
    sessions: Weak<Sessions>,
    config: Arc<Config>,
    runtime: runtime::Id,
    connection: Option<Conn>,
    /// The claim that it serves.
    token: Option<OwnerToken>,
    held: Option<Held>,
    /// How long the server lets the connection be idle, in seconds. While it holds a lock, the TTL: a
    /// process that is stopped keeps the lock for no longer.
    idle: u64,
}

struct Held {
    /// Its name on the server.
    lock: String,
    /// How long its holder relies on it without an answer.
    ttl: Duration,
}

/// The answer of `session.sql`.
type LockRow = (Option<i64>, Option<u64>, String);

/// The session cannot continue.
struct SessionEnded;

impl Session {
    pub(super) fn new(sessions: &Arc<Sessions>, runtime: runtime::Id) -> Self {
        let (config, sessions) = (sessions.config.clone(), Arc::downgrade(sessions));
        let idle = idle_seconds(config.idle());
        Self { sessions, config, runtime, connection: None, token: None, held: None, idle }
    }

    pub(super) async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        self.serve(&mut commands).await;
    }

    /// Serves claims until no sender is left or the connection is unusable.
    async fn serve(&mut self, commands: &mut UnboundedReceiver<Command>) {
        loop {
            let third = Duration::from_secs(self.idle) / 3;
            let pause = self.config.timing.heartbeat.min(third);
            let command = match timeout(pause, commands.recv()).await {
                Ok(Some(command)) => command,
                Ok(None) => return,
                Err(_) if self.is_alive().await => continue,
                Err(_) => return,
            };
            let outcome = match command {
                Command::Acquire { request, handle, reply } => {
                    self.acquire(&request, handle, reply, commands).await
                }
                Command::Renew { token, reply, .. } if self.token != Some(token) => {
                    let _no_receiver = reply.send(RenewOutcome::NotHeld);
                    continue;
                }
                Command::Release { token, reply, .. } if self.token != Some(token) => {
                    let _no_receiver = reply.send(ReleaseOutcome::NotHeld);
                    continue;
                }
                Command::Renew { ttl, reply, .. } => self.renew(ttl, reply).await,
                Command::Release { after, handle, reply, .. } => {
                    self.release(after, handle, reply).await
                }
            };
            if let Err(SessionEnded) = outcome {
                return;
            }
        }
    }

    async fn acquire(
        &mut self,
        request: &AcquireRequest,
        handle: UnboundedSender<Command>,
        reply: oneshot::Sender<Result<AcquireOutcome, StoreError>>,
        commands: &mut UnboundedReceiver<Command>,
    ) -> Result<(), SessionEnded> {
        let token = request.claim.token();
        if !self.sessions.upgrade().is_some_and(|sessions| sessions.is_session_of(token, &handle)) {
            // The claim asked twice, and ended with the first answer.
            let _no_receiver = reply.send(Err(too_late()));
            return Ok(());
        }
        self.token = Some(token);
        if self.connection.is_none() {
            match Live::connect(&self.config).await {
                Ok(live) => self.connection = Some(live.connection),
                Err(error) => {
                    let _no_receiver = reply.send(Err(error));
                    return Err(SessionEnded);
                }
            }
        }
        let Some(connection) = &mut self.connection else { return Err(SessionEnded) };
        let limit = self.config.timing.response_timeout;
        let row = match timeout(limit, acquire_lock(connection, request, 0)).await {
            Ok(Ok(row)) => row,
            Ok(Err(error)) => {
                let _no_receiver = reply.send(Err(error_from(&self.config.address, error)));
                return Err(SessionEnded);
            }
            Err(_) => {
                let sentence = format!("no answer from {} within {limit:?}", self.config.address);
                let _no_receiver = reply.send(Err(StoreError::new(sentence)));
                return Err(SessionEnded);
            }
        };
        let (Some(1), Some(counter), lock) = row else {
            let may_wait = request.waiting != Waiting::Not;
            let queued = may_wait.then_some(MAX_RECHECK);
            let _no_receiver = reply.send(Ok(AcquireOutcome::Held { holder: None, queued }));
            if may_wait {
                drop(handle);
                return self.wait(request, commands).await;
            }
            self.finish_claim(handle);
            return Ok(());
        };
        if self.held.is_some() {
            // The session held it already, and a session can hold a lock several times.
            let release_once = connection.exec_drop("DO RELEASE_LOCK(?)", (&lock,));
            if !matches!(timeout(limit, release_once).await, Ok(Ok(()))) {
                return Err(SessionEnded);
            }
        }
        self.held = Some(Held { lock, ttl: request.ttl });
        self.idle = idle_seconds(request.ttl);
        // The server does not report whether others wait, so assume that they do.
        let fencing = FencingToken::from_counter(counter);
        let _no_receiver = reply.send(Ok(AcquireOutcome::Acquired { fencing, contended: true }));
        Ok(())
    }

    /// Waits on the server until it grants the lock or the claim gives up.
    async fn wait(
        &mut self,
        request: &AcquireRequest,
        commands: &mut UnboundedReceiver<Command>,
    ) -> Result<(), SessionEnded> {
        let Some(mut connection) = self.connection.take() else { return Err(SessionEnded) };
        let (claim, ttl) = (&request.claim, request.ttl);
        let id = connection.id();
        let outcome = {
            let mut waiting = Box::pin(acquire_lock(&mut connection, request, WAIT_SECONDS));
            loop {
                tokio::select! {
                    biased;
                    row = &mut waiting => break row,
                    command = commands.recv() => match command {
                        Some(Command::Acquire { request: other, reply, .. })
                            if other.claim.token() != claim.token() =>
                        {
                            let _no_receiver = reply.send(Err(too_late()));
                        }
                        Some(Command::Acquire { reply, .. }) => {
                            let held = AcquireOutcome::Held { holder: None, queued: Some(MAX_RECHECK) };
                            let _no_receiver = reply.send(Ok(held));
                        }
                        Some(Command::Renew { reply, .. }) => {
                            let _no_receiver = reply.send(RenewOutcome::NotHeld);
                        }
                        Some(Command::Release { token, reply, .. }) if token != claim.token() => {
                            let _no_receiver = reply.send(ReleaseOutcome::NotHeld);
                        }
                        // End the session on the server. Otherwise the server notices late that the
                        // waiter is gone, and may grant it the lock meanwhile.
                        Some(Command::Release { reply, .. }) => {
                            self.end(id).await;
                            let _no_receiver = reply.send(ReleaseOutcome::NotHeld);
                            drop(waiting);
                            abandon(connection);
                            return Err(SessionEnded);
                        }
                        None => {
                            self.end(id).await;
                            drop(waiting);
                            abandon(connection);
                            return Err(SessionEnded);
                        }
                    }
                }
            }
        };
        self.connection = Some(connection);
        let Some(sessions) = self.sessions.upgrade() else { return Err(SessionEnded) };
        let subscriber = sessions.subscribers.get(claim.token().subscriber());
        match outcome {
            Ok((Some(1), Some(counter), lock)) => {
                self.held = Some(Held { lock, ttl });
                self.idle = idle_seconds(ttl);
                let fencing = FencingToken::from_counter(counter);
                if let Some(subscriber) = subscriber {
                    let grant = Grant::new(fencing, Instant::now(), true);
                    subscriber.granted(claim.token(), grant);
                }
                Ok(())
            }
            _ => {
                if let Some(subscriber) = subscriber {
                    subscriber.ask_again(claim.token(), Instant::now());
                }
                Err(SessionEnded)
            }
        }
    }

    async fn renew(
        &mut self,
        ttl: Duration,
        reply: oneshot::Sender<RenewOutcome>,
    ) -> Result<(), SessionEnded> {
        let (Some(connection), Some(held)) = (&mut self.connection, &mut self.held) else {
            let _no_receiver = reply.send(RenewOutcome::NotHeld);
            return Ok(());
        };
        held.ttl = ttl;
        let (idle, longer) = (idle_seconds(ttl), idle_seconds(ttl) > self.idle);
        let query = async {
            if longer {
                connection.query_drop(format!("SET SESSION wait_timeout = {idle}")).await?;
            }
            let ours = "SELECT IS_USED_LOCK(?) = CONNECTION_ID()";
            connection.exec_first::<Option<i64>, _, _>(ours, (&held.lock,)).await
        };
        // Longer than the caller waits: giving up the connection would give up the lock. After the
        // TTL, the holder no longer relies on it.
        match timeout(ttl, query).await {
            Ok(Ok(Some(Some(1)))) => {
                self.idle = self.idle.max(idle);
                let _no_receiver = reply.send(RenewOutcome::Renewed);
                Ok(())
            }
            _ => {
                let _no_receiver = reply.send(RenewOutcome::NotHeld);
                Err(SessionEnded)
            }
        }
    }

    async fn release(
        &mut self,
        after: Duration,
        handle: UnboundedSender<Command>,
        reply: oneshot::Sender<ReleaseOutcome>,
    ) -> Result<(), SessionEnded> {
        let (Some(connection), Some(Held { lock, .. })) = (&mut self.connection, self.held.take())
        else {
            let _no_receiver = reply.send(ReleaseOutcome::NotHeld);
            return Err(SessionEnded);
        };
        let mut reply = Some(reply);
        if !after.is_zero() {
            let _no_receiver = reply.take().map(|reply| reply.send(ReleaseOutcome::Released));
            sleep(after).await;
        }
        let query = connection.exec_first::<Option<i64>, _, _>("SELECT RELEASE_LOCK(?)", (lock,));
        // Without an answer, the lock ends with the connection.
        let outcome = match timeout(self.config.timing.response_timeout, query).await {
            Ok(Ok(Some(Some(1)))) => Ok(ReleaseOutcome::Released),
            Ok(Ok(_)) => Ok(ReleaseOutcome::NotHeld),
            Ok(Err(_)) => Err(Some(ReleaseOutcome::NotHeld)),
            Err(_) => Err(None),
        };
        let usable = outcome.is_ok();
        if usable {
            self.finish_claim(handle);
        }
        // Without an answer, the caller has timed out already.
        if let (Ok(outcome) | Err(Some(outcome)), Some(reply)) = (outcome, reply) {
            let _no_receiver = reply.send(outcome);
        }
        if usable { Ok(()) } else { Err(SessionEnded) }
    }

    fn finish_claim(&mut self, handle: UnboundedSender<Command>) {
        if let (Some(sessions), Some(token)) = (self.sessions.upgrade(), self.token.take()) {
            sessions.ended(token, Some((self.runtime, handle)));
        }
    }

    /// Whether the connection still works. A connection that was never made does not.
    async fn is_alive(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        // As long as a renewal, because the lock is lost with the connection.
        let response = self.config.timing.response_timeout;
        let limit = self.held.as_ref().map_or(response, |held| held.ttl.max(response));
        let usual = idle_seconds(self.config.idle());
        if self.held.is_some() || self.idle == usual {
            return matches!(timeout(limit, connection.ping()).await, Ok(Ok(())));
        }
        // Without a lock it may be idle for longer.
        let set = connection.query_drop(format!("SET SESSION wait_timeout = {usual}"));
        self.idle = usual;
        matches!(timeout(limit, set).await, Ok(Ok(())))
    }

    /// Ends a session on the server, over another connection.
    async fn end(&self, id: u32) {
        let Ok(mut live) = Live::connect(&self.config).await else { return };
        let end = live.connection.query_drop(format!("KILL {id}"));
        let _in_time = timeout(self.config.timing.response_timeout, end).await;
        live.abandon();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let (Some(sessions), Some(token)) = (self.sessions.upgrade(), self.token) {
            sessions.ended(token, None);
            // Notify the holder now, instead of at its next renewal.
            if self.held.is_some()
                && let Some(subscriber) = sessions.subscribers.get(token.subscriber())
            {
                subscriber.lost(token);
            }
        }
        // Close it at once: the lock belongs to the connection.
        if let Some(connection) = self.connection.take() {
            abandon(connection);
        }
    }
}

fn too_late() -> StoreError {
    StoreError::new("the connection serves another claim now").not_sent()
}

async fn acquire_lock(
    connection: &mut Conn,
    request: &AcquireRequest,
    seconds: i64,
) -> Result<LockRow, Error> {
    let (name, idle) = (request.claim.key().name(), idle_seconds(request.ttl));
    let call = "CALL lockattr_v2_session(?, ?, ?)";
    let row = connection.exec_first(call, (name.as_bytes(), seconds, idle)).await?;
    row.ok_or_else(|| Error::Other("the procedure returned no row".into()))
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;
    use url::Url;

    use super::*;
    use crate::lock::settings::ServerSettings;
    use crate::store::{Claim, LockKey, Sharing, Subscriber};

    /// A session without a connection that holds the lock of the first claim.
    fn served() -> (Session, Arc<Sessions>, [Arc<Claim>; 2]) {
        let url = vec![Url::parse("mysql://u@127.0.0.1:1/db").unwrap()];
        let query = [("lock".to_owned(), "session".to_owned())];
        let config = Config::read(url, &query, ServerSettings::default()).unwrap();
        let sessions = Sessions::new(Arc::new(config));
        let subscriber = Arc::new(Subscriber::new(|_name| {}));
        let claims = ["a", "b"].map(|key| {
            let key = LockKey::new("lock:", key).unwrap();
            Arc::new(Claim::of(&subscriber, key, [], Sharing::Exclusive, "service=test"))
        });
        let mut session = Session::new(&sessions, runtime::Handle::current().id());
        session.token = Some(claims[0].token());
        session.held = Some(Held { lock: "lockattr:lock:a".into(), ttl: Duration::from_secs(9) });
        (session, sessions, claims)
    }

    /// The session serves another claim by the time it reads these commands.
    ///
    /// Red without: the token in each command.
    #[tokio::test]
    async fn what_an_earlier_claim_says_late_does_not_concern_the_next() {
        let (mut session, sessions, [_, earlier]) = served();
        let (handle, mut commands) = unbounded_channel();
        let token = earlier.token();
        let (reply, released) = oneshot::channel();
        let after = Duration::ZERO;
        handle.send(Command::Release { token, after, handle: handle.clone(), reply }).ok().unwrap();
        let (reply, renewed) = oneshot::channel();
        handle.send(Command::Renew { token, ttl: Duration::from_secs(9), reply }).ok().unwrap();
        tokio::select! {
            biased;
            () = session.serve(&mut commands) => panic!("its connection was closed"),
            released = released => assert_eq!(released.unwrap(), ReleaseOutcome::NotHeld),
        }
        assert_eq!(renewed.await.unwrap(), RenewOutcome::NotHeld);
        assert!(session.held.is_some(), "it was released");
        drop(sessions);
    }

    /// Red without: `Sessions::is_session_of`.
    #[tokio::test]
    async fn what_an_earlier_claim_asks_late_is_not_asked() {
        let (mut session, _sessions, [served, earlier]) = served();
        let (handle, mut commands) = unbounded_channel();
        let (reply, response) = oneshot::channel();
        let request = AcquireRequest::new(earlier, Duration::from_secs(9));
        let outcome = session.acquire(&request, handle, reply, &mut commands).await;
        assert!(outcome.is_ok(), "its connection was closed");
        assert!(response.await.unwrap().unwrap_err().is_not_sent());
        assert!(session.held.is_some() && session.token == Some(served.token()));
    }
}
