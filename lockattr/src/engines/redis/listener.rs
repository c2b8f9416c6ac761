//! A separate connection for messages, for servers that cannot push them.

use std::sync::{Arc, Weak};

use futures_util::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{RedisResult, Value};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::connection_slot::ConnectionSlot;
use super::endpoint::Endpoint;
use super::notifications::{RedisNotifications, channel};
use crate::lock::server_options::ServerOptions;
use crate::store::Credentials;
use crate::store::heartbeat::Heartbeat;

/// A connection for messages. It ends with the connection that it serves.
pub(super) struct Listener {
    sink: PubSubSink,
    task: AbortHandle,
}

impl Listener {
    /// Connects. If this connection ends or falls silent, `connection_slot` also forgets the one with
    /// this id.
    pub(super) async fn connect(
        (endpoint, credentials, timing): (&Endpoint, Option<&Credentials>, &ServerOptions),
        notifications: Arc<RedisNotifications>,
        connection_slot: Weak<ConnectionSlot>,
        id: u64,
    ) -> RedisResult<Self> {
        let listens = endpoint.listen(credentials, timing.connect_timeout).await?;
        let (sink, messages) = listens.split();
        let (pings, timing) = (sink.clone(), timing.clone());
        let listening = async move {
            let heartbeat = Heartbeat::default();
            tokio::select! {
                () = deliver(messages, &heartbeat, &notifications) => {}
                () = until_silent(pings, &heartbeat, &timing) => {}
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

/// Delivers messages until the connection ends.
async fn deliver(
    mut messages: PubSubStream,
    heartbeat: &Heartbeat,
    notifications: &RedisNotifications,
) {
    while let Some(message) = messages.next().await {
        heartbeat.note_reply();
        if let Ok(text) = message.get_payload::<String>() {
            notifications.deliver(message.get_channel_name(), &text);
        }
    }
}

/// Returns once the server does not reply. A connection that only listens would not find out.
async fn until_silent(mut pings: PubSubSink, heartbeat: &Heartbeat, timing: &ServerOptions) {
    loop {
        if heartbeat.must_ping(timing.heartbeat).await {
            match timeout(timing.response_timeout, pings.ping::<Value>()).await {
                // An error is a reply too.
                Ok(Err(error)) if error.is_unrecoverable_error() => return,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}
