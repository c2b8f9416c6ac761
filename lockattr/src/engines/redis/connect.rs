//! How a connection is made: with its scripts loaded and its subscribers subscribed.

use std::sync::Arc;

use futures_util::future::try_join3;
use redis::aio::SendError;
use redis::{AsyncConnectionConfig, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisError};
use tokio::runtime;
use tokio::time::timeout;

use super::cluster_node;
use super::config::Server;
use super::connection_slot::{ConnectionSlot, LiveConnection, Outcome, error_from};
use super::endpoint::{Connected, Endpoint};
use super::heartbeat::Demotion;
use super::listener::Listener;
use super::login::{Login, is_refused};
use super::native::Native;
use super::notifications::channel;
use super::other_protocol;
use super::restart::{self, GrantsFrom};
use super::sentinels::is_master;
use crate::engines::dial::{handshake_limit, no_answer};
use crate::engines::redlock::DUPLICATE_SERVER;
use crate::store::heartbeat::Heartbeat;
use crate::store::{Credentials, StoreError};

/// How many commands may queue between their callers and the task that writes them. The client's
/// default, 50, makes callers wait for each other and splits the writes of combined commands.
const AT_ONCE: usize = 1024;

/// A connection that the server has let in.
struct LoggedIn {
    connected: Connected,
    credentials: Option<Credentials>,
    /// Whether the server can push messages between replies.
    pushes: bool,
}

/// A connection that is not in use yet.
struct Fresh {
    id: u64,
    heartbeat: Arc<Heartbeat>,
    demotion: Arc<Demotion>,
    /// Those to subscribe, as they were before the connection.
    subscribers: Option<Vec<u64>>,
    logged_in: LoggedIn,
}

impl ConnectionSlot {
    /// Establishes the connection with this id.
    pub(super) async fn establish(self: &Arc<Self>, runtime: runtime::Id, id: u64) -> Outcome {
        let endpoint = self.config.server.find().await?;
        let (heartbeat, demotion) = (Arc::<Heartbeat>::default(), Arc::<Demotion>::default());
        let subscribers = self.notifications.as_ref().map(|notifications| notifications.ids());
        let config = self.connection_config(id, &heartbeat, &demotion);
        let logged_in = self.log_in(&endpoint, &config, runtime).await?;
        let fresh = Fresh { id, heartbeat, demotion, subscribers, logged_in };
        // The sum of these steps has no limit in the client.
        let limit = handshake_limit(self.config.timing.connect_timeout);
        let preparing = timeout(limit, self.prepare(&endpoint, fresh)).await;
        let (live, run) = preparing.unwrap_or_else(|_| {
            let sentence = format!("{}: {}", endpoint.address, no_answer(limit));
            Err(StoreError::new(sentence).not_sent())
        })?;
        match &self.config.member {
            Some(member) if !member.leads_to(run.as_deref()) => {
                let sentence = format!("{}: {DUPLICATE_SERVER}", endpoint.address);
                Err(StoreError::new(sentence).not_sent().invalid())
            }
            _ => Ok(live),
        }
    }

    /// Makes a connection ready for use. Also returns the server's `run_id`, if that is needed.
    async fn prepare(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        fresh: Fresh,
    ) -> Result<(Arc<LiveConnection>, Option<String>), StoreError> {
        let Fresh { id, heartbeat, demotion, subscribers, logged_in } = fresh;
        let LoggedIn { connected, credentials, pushes } = logged_in;
        let prepared = async {
            let mut connection = connected.connection.clone();
            if self.config.server.sentinels().is_some() && !is_master(&mut connection).await? {
                return Err((ErrorKind::Client, "named as the master, but it is a replica").into());
            }
            // All in one round trip.
            let (mut other, mut third) = (connection.clone(), connection.clone());
            let (native, loaded) = (Native::find(&mut other), self.scripts.load(&mut connection));
            let is_misplaced = async {
                let is_alone = !self.scripts.for_a_cluster;
                Ok(is_alone && cluster_node::is_one(&mut third).await?)
            };
            let ((), native, is_misplaced) = try_join3(loaded, native, is_misplaced).await?;
            if is_misplaced {
                return Ok(None);
            }
            let (mut grants, mut run) = (None, None);
            if self.config.forgets.is_some() || self.config.member.is_some() {
                let info = match restart::info(&mut connection).await {
                    // Without `forgets` nothing depends on it, and the user may lack the right.
                    Err(error) if self.config.forgets.is_some() => return Err(error),
                    info => info.unwrap_or_default(),
                };
                let from = |longest| GrantsFrom::read(&info, longest);
                grants = self.config.forgets.map(from).transpose()?;
                run = restart::run_id(&info).map(str::to_owned);
            }
            let listener = match &self.notifications {
                Some(notifications) if !pushes => {
                    let login = (endpoint, credentials.as_ref(), &self.config.timing);
                    let (notifications, slot) = (notifications.clone(), Arc::downgrade(self));
                    Some(Listener::connect(login, notifications, slot, id).await?)
                }
                _ => None,
            };
            let mut live =
                LiveConnection::new(connected, Arc::downgrade(self), id, endpoint.address.clone());
            (live.heartbeat, live.demotion) = (heartbeat, demotion);
            (live.listener, live.grants, live.native) = (listener, grants, native);
            live.login = Login::new(credentials);
            for &subscriber in subscribers.iter().flatten() {
                let outcome = match &live.listener {
                    Some(listener) => listener.subscribe(subscriber).await,
                    None => live.connection().subscribe(channel(subscriber)).await,
                };
                match outcome {
                    Ok(()) => live.subscribed(subscriber),
                    Err(error) if is_full(&error) => break,
                    Err(error) => return Err(error),
                };
            }
            Ok(Some((Arc::new(live), run)))
        };
        let prepared = prepared.await;
        let prepared = prepared.map_err(|error| error_from(&endpoint.address, error).not_sent())?;
        prepared.ok_or_else(|| {
            let advice = cluster_node::advice(&self.config.server);
            StoreError::new(format!("{}: {advice}", endpoint.address)).not_sent().invalid()
        })
    }

    /// Connects and logs in: with what a heartbeat has verified, or else with the provider's answer.
    /// If that is refused, the password may have changed since: the provider is asked once more, and
    /// a different answer is tried once.
    async fn log_in(
        &self,
        endpoint: &Endpoint,
        config: &AsyncConnectionConfig,
        runtime: runtime::Id,
    ) -> Result<LoggedIn, StoreError> {
        let (mut credentials, mut questions) = match self.verified.get(runtime) {
            Some(verified) => (Some(verified), 2),
            None => (self.config.credentials().await?, 1),
        };
        let mut refusal = None;
        loop {
            let error = match self.try_login(endpoint, config, &credentials).await {
                Ok((connected, pushes)) => {
                    self.verified.remove(runtime);
                    return Ok(LoggedIn { connected, credentials, pushes });
                }
                Err(error) => error,
            };
            let is_refused = credentials.is_some() && is_refused(&error);
            let error = error_from(&endpoint.address, error).not_sent();
            if !is_refused {
                // A refusal says more than that a second try failed.
                return Err(refusal.unwrap_or(error));
            }
            self.verified.remove(runtime);
            if questions == 0 {
                return Err(error);
            }
            questions -= 1;
            let again = self.config.credentials().await?;
            if again == credentials {
                return Err(error);
            }
            (credentials, refusal) = (again, Some(error));
        }
    }

    /// Connects and logs in, without RESP3 if the server does not know it. Also returns whether the
    /// server can push messages.
    async fn try_login(
        &self,
        endpoint: &Endpoint,
        config: &AsyncConnectionConfig,
        credentials: &Option<Credentials>,
    ) -> Result<(Connected, bool), RedisError> {
        let (login, limit) = (credentials.as_ref(), self.config.timing.connect_timeout);
        match endpoint.connect(ProtocolVersion::RESP3, login, config, limit).await {
            Err(error) if cannot_push(&error) => {
                let config = &self.plain_config();
                let connected =
                    endpoint.connect(ProtocolVersion::RESP2, login, config, limit).await;
                connected.map(|connected| (connected, false))
            }
            connected => connected.map(|connected| (connected, true)),
        }
    }

    /// Logs in with these credentials, over a connection of its own.
    pub(super) async fn check_login(&self, credentials: &Credentials) -> Result<(), StoreError> {
        let endpoint = self.config.server.find().await?;
        let config = self.plain_config();
        let (login, limit) = (Some(credentials), self.config.timing.connect_timeout);
        let connected = endpoint.connect(ProtocolVersion::RESP2, login, &config, limit).await;
        connected.map(drop).map_err(|error| error_from(&endpoint.address, error))
    }

    /// The limits of a connection, without messages.
    fn plain_config(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_response_timeout(Some(self.config.timing.response_timeout))
            .set_pipeline_buffer_size(AT_ONCE)
    }

    /// The same for a connection that the server can push messages to.
    fn connection_config(
        self: &Arc<Self>,
        id: u64,
        heartbeat: &Arc<Heartbeat>,
        demotion: &Arc<Demotion>,
    ) -> AsyncConnectionConfig {
        let (connection_slot, notifications) = (Arc::downgrade(self), self.notifications.clone());
        let (suspected, demoted) = (heartbeat.clone(), demotion.clone());
        // Notified at once when the server hangs up, so that no command is spent on finding out.
        self.plain_config().set_push_sender(move |push: PushInfo| -> Result<(), SendError> {
            // A slot that moves takes its channels along. The client takes the server's push about
            // that for the reply to a command, and each later reply for that of the next command.
            // Such a connection carries no other commands, so it is replaced.
            let is_lost_subscription = || {
                notifications
                    .as_ref()
                    .is_some_and(|notifications| notifications.is_lost_subscription(&push))
            };
            if push.kind == PushKind::Disconnection || is_lost_subscription() {
                // Its task checks too: a connection that is not in use yet cannot be forgotten.
                suspected.suspect();
                if let Some(connection_slot) = connection_slot.upgrade() {
                    connection_slot.forget(id);
                }
            } else if let Some(notifications) =
                notifications.as_ref().filter(|_| !demoted.is_known())
            {
                notifications.deliver_push(&push);
            }
            Ok(())
        })
    }
}

impl ConnectionSlot {
    /// Adds what to write instead to the error of a connection attempt, if the server speaks another
    /// protocol than the URL says.
    pub(super) async fn explained(&self, error: StoreError) -> StoreError {
        let Server::Fixed(endpoint) = &self.config.server else { return error };
        let cause = error.downcast_ref::<RedisError>();
        if !other_protocol::is_possible(cause) {
            return error;
        }
        match other_protocol::advice(endpoint.addr()).await {
            Some(advice) => {
                StoreError::new(format!("{error}; {advice}")).with_source(error).not_sent()
            }
            None => error,
        }
    }
}

/// Returns whether the server does not know RESP3, and so cannot push messages between replies.
fn cannot_push(error: &RedisError) -> bool {
    error.kind() == ErrorKind::RESP3NotSupported || error.code() == Some("NOPROTO")
}

/// Returns whether the server is out of memory. Some servers then refuse a subscription (Redis 8.6
/// does), but still renew and release locks, so the connection is useful. The subscription is
/// retried at each heartbeat, and by every claim that wants to wait.
fn is_full(error: &RedisError) -> bool {
    error.code() == Some("OOM")
}
