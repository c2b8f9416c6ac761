//! One node of a cluster: its connections for commands, and one for messages.

use std::sync::Arc;

use redis::{Cmd, ErrorKind, FromRedisValue, PushKind, RedisError};
use redis::{ServerErrorKind, Value};

use super::shard_channels::channel_in;
use crate::engines::redis::call::Call;
use crate::engines::redis::config::Config;
use crate::engines::redis::connection_slot::{ConnectionSlot, LiveConnection};
use crate::engines::redis::node::{Effect, Node, Sent};
use crate::engines::redis::notifications::RedisNotifications;
use crate::engines::redis::replicas::ReplicatedReply;
use crate::engines::redis::scripts::Scripts;
use crate::store::{Claim, StoreError, Subscribers};

/// The connections to a node. Messages have their own connection: if a slot moves, the server ends
/// the subscription to its channel, and the client then matches replies to the wrong commands.
pub(in crate::engines::redis) struct Member {
    /// Host and port, as the cluster writes them.
    pub(super) address: String,
    pub(in crate::engines::redis) node: Node,
    subscriptions: Arc<ConnectionSlot>,
    pub(in crate::engines::redis) notifications: Arc<RedisNotifications>,
}

/// Why a node did not execute a request.
#[derive(Debug)]
pub(super) enum Refused {
    /// Nothing was done: the node at this address owns the slot.
    Moved(String),
    /// Nothing was done: the slot is moving, and this key may be at this address.
    Ask(String),
    /// Nothing was done: the keys of the slot are being moved.
    TryAgain(StoreError),
    /// The node failed, and its slots may have another master by now. The outcome is unknown,
    /// unless the error says that nothing was sent.
    Away(StoreError),
    /// Any other error. The outcome is unknown, unless the error says that nothing was sent.
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

    /// Runs a script on the connection of its slot. `asking`: another node redirected it here.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        slot: u16,
        effect: Effect,
        asking: bool,
        script: &Call<'_>,
    ) -> Result<(ReplicatedReply<T>, Arc<LiveConnection>), Refused> {
        let sent = self.node.send(slot.into(), effect, asking, script).await;
        let Sent { connection_slot, live, outcome } = sent.map_err(Refused::Away)?;
        let reply = self.note(&connection_slot, &live, outcome)?;
        Ok((reply, live))
    }

    /// Ensures that the claim receives the notifications of this slot.
    pub(super) async fn ensure_subscribed(
        &self,
        slot: u16,
        claim: &Arc<Claim>,
    ) -> Result<(), Refused> {
        let Some(subscriptions) = self.notifications.shard_channels() else { return Ok(()) };
        let live = self.subscriptions.get().await.map_err(Refused::Away)?;
        if subscriptions.add(claim, slot, live.id) {
            return Ok(());
        }
        if live.listener.is_some() {
            let sentence =
                format!("{} cannot push messages (RESP3): use Redis 7 or later", self.address);
            return Err(Refused::Other(StoreError::new(sentence).not_sent()));
        }
        let subscriber = claim.token().subscriber();
        let channel = channel_in(subscriber, slot);
        let outcome = Cmd::new()
            .arg("SSUBSCRIBE")
            .arg(&channel)
            .query_async::<Value>(&mut live.connection())
            .await;
        match self.note(&self.subscriptions, &live, outcome)? {
            Value::Push { kind: PushKind::SSubscribe, data }
                if data.first() == Some(&Value::BulkString(channel.into())) => {}
            _ => {
                self.subscriptions.forget(live.id);
                let sentence = format!("{} replied to another command", self.address);
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
            self.note(&self.subscriptions, &live, outcome)?;
        }
        Ok(())
    }

    /// Runs a command without keys.
    pub(super) async fn send_command<T: FromRedisValue>(
        &self,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        self.node.send_command(command).await
    }

    /// Returns the names of all keys under `prefix`.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        self.node.names(prefix).await
    }

    /// Checks on every connection that the node replies.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        self.node.ping().await
    }

    /// Makes the claims here ask again: the node owns no slot any more.
    pub(super) fn note_removed(&self) {
        self.notifications.interrupted();
    }

    fn note<T>(
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
                    live.heartbeat.note_reply();
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

    /// Completes an address that this node wrote: without a host it means its own.
    pub(super) fn complete(&self, address: &str) -> String {
        match (address.strip_prefix(':'), self.address.rsplit_once(':')) {
            (Some(port), Some((host, _))) => format!("{host}:{port}"),
            _ => address.to_owned(),
        }
    }
}
