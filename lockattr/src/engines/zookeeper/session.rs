//! The session of a store: made when first needed, and again when it is over.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use rand::seq::SliceRandom;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use zookeeper_client::{
    Client, Connector, Error as ZkError, SessionInfo, SessionState, StateWatcher,
};

use super::config::Config;
use super::parents::Parents;
use super::reach;
use crate::Error;
use crate::engines::dial::LONGEST;
use crate::engines::sequenced::{StoreThread, ThreadGuard};
use crate::platform::process::Process;
use crate::platform::sync::Mutex;
use crate::store::StoreError;
use crate::store::last_reply::LastReply;
use crate::store::silence::unless_silent;
use crate::store::slots::{Attempt, Slots, unless_panics};

/// How long to wait before another try to close an abandoned session.
const CLOSE_RETRY_PAUSE: Duration = Duration::from_millis(300);

/// The same in session timeouts, once the session has been abandoned for one. A server whose reply to a try is lost
/// counts that try as a sign of life, so the session would never end if the pauses were shorter than servers take to
/// end it: its timeout, and up to a tick more.
const LONG_CLOSE_RETRY_PAUSE: u32 = 2;

/// Keeps the session of a store.
pub(super) struct Sessions {
    pub(super) config: Config,
    pub(super) thread: StoreThread,
    /// On any connection.
    pub(super) last_reply: LastReply,
    pub(super) parents: Parents,
    slots: Slots<(), Arc<Session>>,
}

type Outcome = Result<Arc<Session>, StoreError>;

/// One session. It is closed when this is dropped.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) id: u64,
    last_reply: LastReply,
    /// When the first of the requests was sent that failed by silence, if no reply came since.
    unanswered_since: Mutex<Option<Instant>>,
    unanswered: Arc<Notify>,
    over: watch::Receiver<bool>,
}

impl Sessions {
    pub(super) fn new(config: Config) -> Arc<Self> {
        let config = config.with_relay();
        let (thread, last_reply) = (StoreThread::new("lockattr-zookeeper"), LastReply::new());
        let (parents, slots) = Default::default();
        Arc::new(Self { config, thread, last_reply, parents, slots })
    }

    /// Returns the session, connected. Makes one if there is none.
    pub(super) async fn get(self: &Arc<Self>) -> Outcome {
        match self.slots.live(()) {
            Some((_, session)) if !session.is_over() => return self.connected(session).await,
            Some((over, _)) => drop(self.slots.forget(over)),
            None => {}
        }
        let (runtime, guard) = (self.thread.handle()?, self.thread.guard()?);
        let connect = |attempt| {
            let (sessions, config) = (Arc::downgrade(self), self.config.clone());
            runtime.spawn(connect(sessions, config, guard, attempt));
        };
        self.slots.get((), connect).await
    }

    /// Returns the session with this id, if it is not over.
    pub(super) fn with(&self, id: u64) -> Option<Arc<Session>> {
        let live = self.slots.live(()).map(|(_, session)| session);
        live.filter(|session| session.id == id && !session.is_over())
    }

    /// Waits for a connection. A request without one would wait in the client, and be executed
    /// later.
    async fn connected(&self, session: Arc<Session>) -> Outcome {
        if session.client.state() == SessionState::Disconnected {
            let mut state = session.client.state_watcher();
            let connected = async {
                while session.client.state() == SessionState::Disconnected {
                    state.changed().await;
                }
            };
            if timeout(self.config.connect_timeout, connected).await.is_err() {
                let sentence = format!("no connection to {}", self.config.address);
                let unknown = StoreError::new(sentence).not_sent();
                return Err(self.config.tls_refusal().unwrap_or(unknown));
            }
        }
        Ok(session)
    }

    /// Returns the servers' reply, unless the connection is silent for `response_timeout`.
    pub(super) async fn send<T, E: Into<ZkError>>(
        &self,
        session: &Session,
        request: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, ZkError>, StoreError> {
        let reply = async { self.noted(session, request.await.map_err(Into::into)) };
        self.unless_silent(session, reply).await
    }

    /// Returns the replies to several requests, under the same condition.
    pub(super) async fn send_all<T>(
        &self,
        session: &Session,
        requests: impl IntoIterator<Item = impl Future<Output = Result<T, ZkError>>>,
    ) -> Result<Vec<Result<T, ZkError>>, StoreError> {
        let replies =
            requests.into_iter().map(|request| async { self.noted(session, request.await) });
        self.unless_silent(session, join_all(replies)).await
    }

    pub(super) async fn unless_silent<T>(
        &self,
        session: &Session,
        request: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let sent_at = Instant::now();
        let reply = unless_silent(&session.last_reply, self.config.response_timeout, request);
        match AssertUnwindSafe(reply).catch_unwind().await {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => {
                session.note_unanswered(sent_at, self.config.max_ttl());
                Err(self.no_reply())
            }
            // The client panics on an empty path.
            Err(_) => {
                let sentence = format!("{} sent an unexpected reply", self.config.address);
                Err(StoreError::new(sentence))
            }
        }
    }

    /// Notes that the servers have replied, if this is a reply of theirs.
    pub(super) fn noted<T>(
        &self,
        session: &Session,
        reply: Result<T, ZkError>,
    ) -> Result<T, ZkError> {
        // The client itself returns the other errors, when it has lost its connection.
        if let Ok(_) | Err(ZkError::NoNode | ZkError::NodeExists | ZkError::NotEmpty) = reply {
            session.last_reply.record();
            self.last_reply.record();
        }
        reply
    }

    pub(super) fn no_reply(&self) -> StoreError {
        let Config { address, response_timeout, .. } = &self.config;
        StoreError::new(format!("no answer from {address} within {response_timeout:?}"))
    }

    /// Turns an error of the servers or of the connection into one of the store.
    pub(super) fn error(&self, error: ZkError) -> StoreError {
        let hint = match error {
            ZkError::NoAuth => ": give this user the rights that the docs of `ZookeeperStore` name",
            _ => "",
        };
        let sentence = format!("{}: {error}{hint}", self.config.address);
        StoreError::new(sentence).with_source(error)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("address", &self.config.address).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow() || self.is_terminated()
    }

    /// Whether it has certainly ended.
    pub(super) fn is_terminated(&self) -> bool {
        self.client.state().is_terminated()
    }

    /// Gives the session up once it has answered no request for `limit`: no lease lasts longer. The client keeps a
    /// connection on which anything arrives, also a reply that never ends.
    fn note_unanswered(&self, sent_at: Instant, limit: Duration) {
        let mut since = self.unanswered_since.lock();
        let first = since.filter(|first| self.last_reply.after(*first).is_none());
        let latest = || self.last_reply.after(sent_at).unwrap_or(sent_at);
        let first = *since.insert(first.unwrap_or_else(latest));
        if first.elapsed() >= limit {
            self.unanswered.notify_one();
        }
    }

    /// Returns once the session is over.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut over = self.over.clone();
        async move {
            // An error means that no task watches it any more: the session was closed.
            let _over = over.wait_for(|over| *over).await;
        }
    }
}

/// The process whose thread polls the sockets of all sessions. The client starts that thread with
/// its first connection, for as long as the process lives (`async-io`), and a fork does not copy
/// it.
static IO_THREAD_PROCESS: OnceLock<Process> = OnceLock::new();

/// Returns an error in the fork of a process that has had a session: it would never get a reply.
pub(super) fn check_not_forked() -> Result<(), Error> {
    if IO_THREAD_PROCESS.get().is_none_or(Process::is_current) {
        return Ok(());
    }
    Err(Error::InvalidOptions(
        "this process was forked from one that was connected to ZooKeeper, whose client does not survive a \
         fork: fork before the first lock, or start a new program instead (`std::process::Command`)"
            .into(),
    ))
}

/// Makes a session, and watches it until it is over.
async fn connect(
    sessions: Weak<Sessions>,
    config: Config,
    guard: ThreadGuard,
    attempt: Attempt<Arc<Session>>,
) {
    IO_THREAD_PROCESS.get_or_init(Process::current);
    // Each step has its own limit. This one is for a step that forgets it: all callers wait for
    // this attempt.
    let look_ups = LONGEST.saturating_mul(2);
    let limit = look_ups.saturating_add(config.connect_timeout.saturating_mul(2));
    let limit = limit.saturating_add(open_limit(&config));
    let made = timeout(limit, unless_panics(establish(&config))).await.unwrap_or_else(|_| {
        let sentence = format!("{}: no session was opened within {limit:?}", config.address);
        Err(StoreError::new(sentence).not_sent())
    });
    let (is_over, over) = watch::channel(false);
    let unanswered = Arc::<Notify>::default();
    let mut live = None;
    let outcome = made.map(|client| {
        live = Some((client.state_watcher(), client.session().clone()));
        let id = client.session_id().0.cast_unsigned();
        let (last_reply, unanswered_since) = (LastReply::new(), Mutex::default());
        let unanswered = unanswered.clone();
        Arc::new(Session { client, id, last_reply, unanswered_since, unanswered, over })
    });
    {
        let Some(sessions) = sessions.upgrade() else { return };
        sessions.slots.settle((), attempt.id, &outcome);
    }
    let id = attempt.id;
    attempt.finish(outcome);
    if let Some((mut state, session)) = live {
        tokio::select! {
            () = until_ended_or_silent(&mut state, config.max_ttl()) => {}
            () = unanswered.notified() => {}
        }
        is_over.send_replace(true);
        if let Some(sessions) = sessions.upgrade() {
            sessions.slots.forget(id);
        }
        // An abandoned session must not leave its entries behind. The client closes it when it
        // reaches a server. But the longer that takes, the longer it pauses between tries, and then
        // it leaves the session to the servers.
        if !state.state().is_terminated() {
            close(&sessions, &config, session).await;
        }
    }
    drop(guard);
}

/// Closes an abandoned session as soon as a server replies.
async fn close(sessions: &Weak<Sessions>, config: &Config, session: SessionInfo) {
    let gave_up_at = Instant::now();
    // The servers may end it earlier, and a dropped store tries no longer than they take for that.
    while sessions.strong_count() > 0 || gave_up_at.elapsed() < config.session_timeout {
        sleep(close_retry_pause(config.session_timeout, gave_up_at.elapsed())).await;
        let Ok((connector, hosts)) = connector(config).await else { continue };
        match connector.with_session(session.clone()).connect(&hosts).await {
            Ok(client) => {
                let mut state = client.state_watcher();
                drop(client);
                // Not trusted: the first client may have connected again too, and each may have
                // displaced the other.
                let _in_time = timeout(config.silence_limit(), ended(&mut state)).await;
            }
            // It is closed.
            Err(ZkError::SessionExpired) => return,
            Err(_) => {}
        }
    }
}

/// How long to wait before another try, `after` the session was abandoned.
fn close_retry_pause(session_timeout: Duration, after: Duration) -> Duration {
    match after < session_timeout {
        true => CLOSE_RETRY_PAUSE,
        false => session_timeout * LONG_CLOSE_RETRY_PAUSE,
    }
}

async fn ended(state: &mut StateWatcher) {
    let mut now = state.state();
    while !now.is_terminated() {
        now = state.changed().await;
    }
}

async fn establish(config: &Config) -> Result<Client, StoreError> {
    let Config { address, session_timeout, .. } = config;
    let (mut connector, hosts) = connector(config).await?;
    if let Some(login) = config.login.current(address, config.connect_timeout).await? {
        connector = connector.with_auth("digest", login.as_bytes());
    }
    let limit = open_limit(config);
    let connected = timeout(limit, connector.connect(&hosts)).await;
    let not_made = |what: String| StoreError::new(format!("{address}: {what}")).not_sent();
    let client = match connected {
        Ok(Ok(client)) => client,
        Ok(Err(ZkError::NoHosts)) => {
            let sentence = "no server opened a session: is a majority of them up?";
            if let Some(refusal) = config.tls_refusal() {
                return Err(refusal);
            }
            let said = reach::refusals(&config.hosts, config.connect_timeout).await;
            let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
            return Err(not_made(format!("{sentence}{said}")));
        }
        Ok(Err(error)) => return Err(not_made(error.to_string()).with_source(error)),
        Err(_) => {
            if let Some(refusal) = config.tls_refusal() {
                return Err(refusal);
            }
            let said = reach::refusals(&config.hosts, config.connect_timeout).await;
            let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
            return Err(not_made(format!("no session was opened within {limit:?}{said}")));
        }
    };
    let granted = client.session_timeout();
    if granted < *session_timeout {
        return Err(not_made(format!(
            "its servers allow sessions of {granted:?} at most, and `session_timeout` is \
             {session_timeout:?}: raise their `maxSessionTimeout` (20 ticks by default), or lower \
             `session_timeout`, and `ttl` to half of it"
        )));
    }
    Ok(client)
}

/// How long the servers have to open a session: each of them is tried.
fn open_limit(config: &Config) -> Duration {
    let each = config.silence_limit() + config.connect_timeout;
    each * u32::try_from(config.hosts.len()).unwrap_or(1)
}

async fn connector(config: &Config) -> Result<(Connector, String), StoreError> {
    let found = reach::look_up(&config.hosts, config.connect_timeout)
        .await
        .map_err(|error| StoreError::new(format!("{}: {error}", config.address)).not_sent())?;
    let (connector, mut hosts) = config.reach(&found)?;
    // The client tries them in order, and not all clients of a fleet should use the first.
    // Names come last: each takes a look-up, and its first address may not answer.
    hosts.shuffle(&mut rand::rng());
    hosts.sort_by_key(|host| config.hosts.contains(host));
    let connector = connector
        .with_session_timeout(config.session_timeout)
        .with_connection_timeout(config.silence_limit())
        .with_readonly(false)
        .with_fail_eagerly();
    Ok((connector, hosts.join(",")))
}

/// Returns once the session has ended, or was without a connection for too long to be relied on.
async fn until_ended_or_silent(state: &mut StateWatcher, limit: Duration) {
    let mut now = state.state();
    while !now.is_terminated() {
        now = match now {
            SessionState::Disconnected => match timeout(limit, state.changed()).await {
                Ok(next) => next,
                Err(_) => return,
            },
            _ => state.changed().await,
        };
    }
}
