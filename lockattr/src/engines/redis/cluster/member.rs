//! One node of a cluster: its connections for commands, and one for messages.

use std::sync::Arc;

use redis::{Cmd, ErrorKind, FromRedisValue, PushKind, RedisError};
use redis::{ServerErrorKind, Value};
use tokio::time::Instant;

use super::shard_channels::channel_in;
use crate::engines::redis::call::Call;
use crate::engines::redis::config::Config;
use crate::engines::redis::connection_slot::{ConnectionSlot, LiveConnection};
use crate::engines::redis::node::{Effect, Node, Sent};
use crate::engines::redis::notifications::RedisNotifications;
use crate::engines::redis::replicas::Answer;
use crate::engines::redis::scripts::Scripts;
use crate::store::{Claim, StoreError, Subscribers};

/// The connections to a node. The messages have one of their own: a channel that is taken from us,
/// because its slot has moved, puts the client out of step with its answers.
pub(in crate::engines::redis) struct Member {
    /// Host and port, as the cluster writes them.
    pub(super) address: String,
    pub(in crate::engines::redis) node: Node,
    subscriptions: Arc<ConnectionSlot>,
    pub(in crate::engines::redis) notifications: Arc<RedisNotifications>,
}

/// Why a node did not do what it was asked.
#[derive(Debug)]
pub(super) enum Refused {
    /// Nothing was done: another has the slot, at this address.
    Moved(String),
    /// Nothing was done: this key may be at this address, while the slot is on its way.
    Ask(String),
    /// Nothing was done: the keys of the slot are on their way.
    TryAgain(StoreError),
    /// It is unknown, and the slots may have another master by now.
    Away(StoreError),
    /// It is unknown.
    Other(StoreError),
}

impl Member {
    pub(super) fn new(
        address: String,
        config: &Config,
        scripts: &Arc<Scripts>,
        subscribers: &Arc<Subscribers>,
    ) -> Self {
        let notifications =
            Arc::new(RedisNotifications::of_a_node(subscribers, config.timing.replicas > 0));
        let node = Node::new(config, scripts, None);
        let subscriptions =
            ConnectionSlot::new(config.clone(), scripts.clone(), Some(notifications.clone()));
        Self { address, node, subscriptions, notifications }
    }

    /// Runs a script on the connection of its slot; `asking` if another node sent us.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        slot: u16,
        effect: Effect,
        asking: bool,
        script: &Call<'_>,
    ) -> Result<(Answer<T>, Arc<LiveConnection>), Refused> {
        let sent = self.node.send(slot.into(), effect, asking, script).await;
        let Sent { connection_slot, live, outcome } = sent.map_err(Refused::Away)?;
        let answer = self.noted(&connection_slot, &live, outcome)?;
        Ok((answer, live))
    }

    /// Ensures that the claim learns what is said in this slot.
    pub(super) async fn hear(&self, slot: u16, claim: &Arc<Claim>) -> Result<(), Refused> {
        let Some(subscriptions) = self.notifications.shard_channels() else { return Ok(()) };
        let live = self.subscriptions.get().await.map_err(Refused::Away)?;
        if subscriptions.need(claim, slot, live.id) {
            return Ok(());
        }
        if live.listener.is_some() {
            let sentence = format!("{} does not push (RESP3): use Redis 7 or later", self.address);
            return Err(Refused::Other(StoreError::new(sentence).not_sent()));
        }
        let subscriber = claim.token().subscriber();
        let channel = channel_in(subscriber, slot);
        let outcome = Cmd::new()
            .arg("SSUBSCRIBE")
            .arg(&channel)
            .query_async::<Value>(&mut live.connection())
            .await;
        match self.noted(&self.subscriptions, &live, outcome)? {
            Value::Push { kind: PushKind::SSubscribe, data }
                if data.first() == Some(&Value::BulkString(channel.into())) => {}
            _ => {
                self.subscriptions.forget(live.id);
                let sentence = format!("{} answered out of step", self.address);
                return Err(Refused::Other(StoreError::new(sentence).not_sent()));
            }
        }
        subscriptions.subscribed(subscriber, slot, live.id);
        for channel in subscriptions.take_unneeded() {
            let outcome = Cmd::new()
                .arg("SUNSUBSCRIBE")
                .arg(&channel)
                .query_async::<Value>(&mut live.connection())
                .await;
            self.noted(&self.subscriptions, &live, outcome)?;
        }
        Ok(())
    }

    /// Runs a command that has no key.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        self.node.ask(command).await
    }

    /// The names of all that it has under `prefix`.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        self.node.names(prefix).await
    }

    /// Asks on every connection whether the node answers.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        self.node.ping().await
    }

    /// Whether it has answered since then, on the connection for a slot.
    pub(super) fn answered_since(&self, slot: u16, since: Instant) -> bool {
        self.node.answered_since(slot.into(), since)
    }

    /// It has no slot any more.
    pub(super) fn is_left(&self) {
        self.notifications.interrupted();
    }

    fn noted<T>(
        &self,
        connection_slot: &ConnectionSlot,
        live: &LiveConnection,
        outcome: Result<T, RedisError>,
    ) -> Result<T, Refused> {
        if outcome.is_err() {
            live.raised.clear();
        }
        let refused: fn(StoreError) -> Refused = match &outcome {
            Ok(_) => Refused::Other,
            Err(error) => match error.kind() {
                ErrorKind::Server(kind @ (ServerErrorKind::Moved | ServerErrorKind::Ask)) => {
                    let Some((address, _slot)) = error.redirect_node() else {
                        return connection_slot.note(live, outcome).map_err(Refused::Other);
                    };
                    live.heartbeat.replied();
                    let address = self.complete(address);
                    return Err(match kind {
                        ServerErrorKind::Ask => Refused::Ask(address),
                        _ => Refused::Moved(address),
                    });
                }
                ErrorKind::Server(ServerErrorKind::TryAgain) => {
                    |error| Refused::TryAgain(error.not_sent())
                }
                ErrorKind::Server(
                    ServerErrorKind::ClusterDown
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::ReadOnly
                    | ServerErrorKind::BusyLoading,
                ) => |error| Refused::Away(error.not_sent()),
                _ if error.is_timeout() || error.is_unrecoverable_error() => Refused::Away,
                _ => Refused::Other,
            },
        };
        connection_slot.note(live, outcome).map_err(refused)
    }

    /// An address that a node wrote: without a host it means its own.
    pub(super) fn complete(&self, address: &str) -> String {
        match (address.strip_prefix(':'), self.address.rsplit_once(':')) {
            (Some(port), Some((host, _))) => format!("{host}:{port}"),
            _ => address.to_owned(),
        }
    }
}
