//! One server, over a small pool of connections.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures_util::future::join_all;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind};

use super::call::Call;
use super::config::Config;
use super::connection_slot::{ConnectionSlot, LiveConnection};
use super::heartbeat::Demotion;
use super::held_locks::{Page, scan};
use super::notifications::RedisNotifications;
use super::replicas::{Replicas, ReplicatedReply};
use super::scripts::Scripts;
use crate::store::{LockKey, StoreError};

/// The index of the connection that receives messages.
const SUBSCRIBER_SLOT: usize = 0;

/// The connections to one server. All commands for one key use one of them, its place, so they keep
/// their order.
pub(super) struct Node {
    connection_slots: Vec<Arc<ConnectionSlot>>,
    /// How many of them the keys are spread over.
    spread: usize,
    pub(super) replicas: Replicas,
}

/// The error of a request to a server that is no longer the master.
const NO_MASTER: &str = "the server is no longer the master, and has not replied";

/// The effect of a script on leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Effect {
    /// Acquires locks, if the server may grant any.
    Acquire,
    /// Makes leases longer.
    Extend,
    /// Makes leases shorter, without ending them now.
    Shorten,
    /// Releases locks.
    Release,
    /// Reads only.
    Read,
}

/// A command that was sent, and its outcome.
pub(super) struct Sent<T> {
    pub(super) connection_slot: Arc<ConnectionSlot>,
    pub(super) live: Arc<LiveConnection>,
    pub(super) outcome: RedisResult<ReplicatedReply<T>>,
}

impl Node {
    pub(super) fn new(
        config: &Config,
        scripts: &Arc<Scripts>,
        notifications: Option<&Arc<RedisNotifications>>,
    ) -> Self {
        let connection_slot = |index| {
            let notifications = notifications.filter(|_| index == SUBSCRIBER_SLOT).cloned();
            ConnectionSlot::new(config.clone(), scripts.clone(), notifications)
        };
        let replicas = Replicas::new(&config.timing);
        let spread = config.timing.redis_connections();
        let connection_slots = spread + usize::from(replicas.are_needed());
        Self {
            connection_slots: (0..connection_slots).map(connection_slot).collect(),
            spread,
            replicas,
        }
    }

    /// Returns the place of a key: the index of its connection.
    pub(super) fn index(&self, key: &LockKey) -> usize {
        if self.spread == 1 {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        key.name().hash(&mut hasher);
        // The remainder is smaller than `spread`, which is a `usize`.
        (hasher.finish() % self.spread as u64) as usize
    }

    /// Returns the connection of a place. There may be more places than connections.
    ///
    /// The server blocks a connection while it waits for replicas. Renewals would come too late
    /// behind such acquisitions, so they have a connection of their own. Requests that shorten a
    /// lease use it too: they must stay behind the renewals under way, which would make the lease
    /// long again.
    pub(super) fn connection_slot(&self, index: usize, effect: Effect) -> &Arc<ConnectionSlot> {
        let apart = matches!(effect, Effect::Extend | Effect::Shorten);
        match apart && self.replicas.are_needed() {
            true => &self.connection_slots[self.spread],
            false => &self.connection_slots[index % self.spread],
        }
    }

    /// Runs a script. Returns the reply, and the connection that it used.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        index: usize,
        effect: Effect,
        script: &Call<'_>,
    ) -> Result<(ReplicatedReply<T>, Arc<LiveConnection>), StoreError> {
        let Sent { connection_slot, live, outcome } =
            self.send(index, effect, false, script).await?;
        Ok((connection_slot.note(&live, outcome)?, live))
    }

    /// Sends a script. Returns an error only if nothing was sent; any other is in the outcome.
    /// `asking`: another node of a cluster redirected it here.
    pub(super) async fn send<T: FromRedisValue>(
        &self,
        index: usize,
        effect: Effect,
        asking: bool,
        script: &Call<'_>,
    ) -> Result<Sent<T>, StoreError> {
        let connection_slot = self.connection_slot(index, effect).clone();
        let live = connection_slot.get().await?;
        if let (Effect::Acquire, Some(grants)) = (effect, live.grants) {
            grants.check(&live.address)?;
        }
        let needs_replicas =
            matches!(effect, Effect::Acquire | Effect::Extend) && self.replicas.are_needed();
        live.combiner.send_first(&connection_slot, &live);
        script.departs();
        let connection = &mut live.connection();
        // By its digest; it is loaded if the server does not know it.
        let reply = async {
            match (needs_replicas, asking) {
                (false, false) => script.run(connection).await.map(ReplicatedReply::unreplicated),
                (true, _) => self.replicas.invoke(connection, asking, script).await,
                (false, true) => Replicas::NONE.invoke(connection, asking, script).await,
            }
        };
        let outcome = until_demoted(&connection_slot, &live.demotion, reply).await;
        Ok(Sent { connection_slot, live, outcome })
    }

    /// Requires a script to raise the counters again, on each connection.
    pub(super) fn clear_raised(&self) {
        self.connection_slots.iter().for_each(|connection_slot| connection_slot.clear_raised());
    }

    /// Runs a command without keys.
    pub(super) async fn send_command<T: FromRedisValue>(
        &self,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        let connection_slot = self.connection_slot(0, Effect::Read);
        let live = connection_slot.get().await?;
        let outcome = command.query_async(&mut live.connection()).await;
        connection_slot.note(&live, outcome)
    }

    /// Returns the names of all keys under `prefix`, some of them perhaps twice.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        let (mut names, mut cursor) = (Vec::new(), b"0".to_vec());
        loop {
            let (next, page): Page =
                self.send_command(&scan(&cursor, prefix)).await.map_err(with_advice)?;
            names.extend(page);
            cursor = next;
            if cursor == b"0" {
                return Ok(names);
            }
        }
    }

    /// Subscribes to the subscriber's channel.
    pub(super) async fn subscribe(&self, subscriber: u64) -> Result<(), StoreError> {
        self.connection_slots[SUBSCRIBER_SLOT].subscribe(subscriber).await
    }

    /// Checks on every connection that the server replies, so that the first locks find their
    /// connections ready.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        let pings = self.connection_slots.iter().map(|connection_slot| async move {
            let live = connection_slot.get().await?;
            let outcome = redis::cmd("PING").query_async::<()>(&mut live.connection()).await;
            connection_slot.note(&live, outcome)
        });
        join_all(pings).await.into_iter().collect()
    }

    /// Returns the number of connections.
    pub(super) fn connections(&self) -> usize {
        self.connection_slots.len()
    }
}

/// Returns the reply, or an error as soon as the sentinels report another master.
pub(super) async fn until_demoted<T>(
    connection_slot: &ConnectionSlot,
    demotion: &Demotion,
    reply: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    if connection_slot.config.server.sentinels().is_none() {
        return reply.await;
    }
    tokio::select! {
        biased;
        reply = reply => reply,
        () = demotion.notified() => Err((ErrorKind::Client, NO_MASTER).into()),
    }
}

/// Adds the missing right to the error, if the user may not list names.
fn with_advice(error: StoreError) -> StoreError {
    let cause = error.downcast_ref::<RedisError>();
    let forbidden = ErrorKind::Server(ServerErrorKind::NoPerm);
    match cause.is_some_and(|cause| cause.kind() == forbidden) {
        true => StoreError::new(format!(
            "{error}; give the user the right to list locks: `ACL SETUSER … +scan`"
        ))
        .with_source(error),
        false => error,
    }
}
