//! A separate connection for messages, for servers that cannot push them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use redis::RedisResult;
use redis::aio::PubSubSink;
use tokio::task::AbortHandle;

use super::connection_slot::ConnectionSlot;
use super::endpoint::Endpoint;
use super::notifications::{RedisNotifications, channel};
use crate::store::Credentials;

/// A connection for messages. It ends with the connection that it serves.
pub(super) struct Listener {
    sink: PubSubSink,
    task: AbortHandle,
}

impl Listener {
    /// Connects. If this connection ends, `connection_slot` also forgets the one with this id.
    pub(super) async fn connect(
        (endpoint, credentials, limit): (&Endpoint, Option<&Credentials>, Duration),
        notifications: Arc<RedisNotifications>,
        connection_slot: Weak<ConnectionSlot>,
        id: u64,
    ) -> RedisResult<Self> {
        let (sink, mut messages) = endpoint.listen(credentials, limit).await?.split();
        let listening = async move {
            while let Some(message) = messages.next().await {
                if let Ok(text) = message.get_payload::<String>() {
                    notifications.deliver(message.get_channel_name(), &text);
                }
            }
            if let Some(connection_slot) = connection_slot.upgrade() {
                connection_slot.forget(id);
            }
        };
        let task = tokio::spawn(listening).abort_handle();
        Ok(Self { sink, task })
    }

    /// Subscribes to the channel of one more subscriber.
    pub(super) async fn subscribe(&self, subscriber: u64) -> RedisResult<()> {
        self.sink.clone().subscribe(channel(subscriber)).await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}
