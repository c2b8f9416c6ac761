//! Brings what the server publishes to the inboxes of the managers.

use std::sync::Arc;

use redis::{FromRedisValue, PushInfo, PushKind};
use tokio::time::Instant;

use super::cluster::{Ears, slot_of};
use super::contended::Contended;
use crate::store::{Notifications, Subscriber, Subscribers};

/// The channel of an inbox is this and its number; the scripts find the number in the token. In a
/// cluster a hash tag follows.
const CHANNEL: &str = "lockattr:inbox:";

/// What one server has for the inboxes of a store.
pub(super) struct Post {
    mail: Notifications,
    pub(super) contended: Contended,
    /// Of a node in a cluster, on which each slot has channels of its own.
    ears: Option<Ears>,
}

impl Post {
    /// Leases that count only once replicas have them are asked for again when a release granted
    /// them.
    pub(super) fn new(replicated: bool) -> Self {
        Self {
            mail: Notifications::new(Arc::default(), replicated),
            contended: Contended::new(),
            ears: None,
        }
    }

    /// For a node of a cluster.
    pub(super) fn of_a_node(subscribers: &Arc<Subscribers>, replicated: bool) -> Self {
        let mail = Notifications::new(subscribers.clone(), replicated);
        Self { mail, contended: Contended::new(), ears: Some(Ears::default()) }
    }

    /// Who listens to which shard channels, in a cluster.
    pub(super) fn ears(&self) -> Option<&Ears> {
        self.ears.as_ref()
    }

    /// Serves this inbox too, for as long as its manager keeps it.
    pub(super) fn add(&self, subscriber: &Arc<Subscriber>) {
        self.mail.subscribers.add(subscriber);
    }

    /// The numbers of the inboxes that have a channel as soon as there is a connection.
    pub(super) fn ids(&self) -> Vec<u64> {
        if self.ears.is_some() {
            return Vec::new();
        }
        self.mail.subscribers.all().iter().map(|subscriber| subscriber.id()).collect()
    }

    /// Takes note of what the server's clock showed in the answer to a question sent at `asked`.
    pub(super) fn saw_clock(&self, asked: Instant, micros: u64) {
        self.mail.saw_clock(asked, micros);
    }

    /// The connection on which the messages came is gone, and messages with it.
    pub(super) fn interrupted(&self) {
        let Some(ears) = &self.ears else { return self.mail.interrupted() };
        self.mail.forget_clock();
        ears.missed(None, &self.mail.subscribers);
    }

    /// Whether the server has taken a shard channel from us, because its slot has moved.
    pub(super) fn is_taken(&self, push: &PushInfo) -> bool {
        let (PushKind::SUnsubscribe, Some(ears)) = (&push.kind, &self.ears) else { return false };
        let channel = push.data.first().and_then(|name| String::from_redis_value_ref(name).ok());
        let Some(channel) = channel else { return true };
        // Somebody who needs it may have come while we let go of it.
        self.missed_in(slot_of(&channel));
        !ears.left(&channel)
    }

    /// What was said about the locks of this slot may not have come.
    pub(super) fn missed_in(&self, slot: u16) {
        if let Some(ears) = &self.ears {
            ears.missed(Some(slot), &self.mail.subscribers);
        }
    }

    /// Delivers what the server pushed, if that is a message.
    pub(super) fn deliver_push(&self, push: &PushInfo) {
        if matches!(push.kind, PushKind::Message | PushKind::SMessage)
            && let [channel, message] = push.data.as_slice()
            && let Ok(channel) = String::from_redis_value_ref(channel)
            && let Ok(message) = String::from_redis_value_ref(message)
        {
            self.deliver(&channel, &message);
        }
    }

    /// Delivers a message.
    pub(super) fn deliver(&self, channel: &str, message: &str) {
        let Some(id) = inbox_of(channel) else {
            tracing::warn!(channel, "a message to nobody was passed over");
            return;
        };
        if let Some(name) = message.strip_prefix("wanted ") {
            self.contended.note(name);
        }
        self.mail.deliver(id, message);
    }
}

/// Where an inbox's messages are published.
pub(super) fn channel(id: u64) -> String {
    format!("{CHANNEL}{id:016x}")
}

fn inbox_of(channel: &str) -> Option<u64> {
    let id = channel.strip_prefix(CHANNEL)?;
    let id = id.split_once(':').map_or(id, |(id, _tag)| id);
    u64::from_str_radix(id, 16).ok()
}
