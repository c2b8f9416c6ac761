//! Delivers what the server publishes to the subscribers of the managers.

use std::sync::Arc;

use redis::{FromRedisValue, PushInfo, PushKind};
use tokio::time::Instant;

use super::cluster::{ShardChannels, slot_of};
use crate::engines::contended::Contended;
use crate::store::{Notifications, Subscriber, Subscribers};

/// The prefix of a subscriber's channel. Its number follows, which the scripts find in the token;
/// in a cluster, then a hash tag.
const CHANNEL: &str = "lockattr:inbox:";

/// The notifications of one server for the subscribers of a store.
pub(super) struct RedisNotifications {
    delivery: Notifications,
    pub(super) contended: Contended,
    /// For a node of a cluster, where each slot has channels of its own.
    shard_channels: Option<ShardChannels>,
}

impl RedisNotifications {
    /// With `replicated`, a claim that a message grants a lock asks again, because the lease counts
    /// only once replicas have it.
    pub(super) fn new(replicated: bool) -> Self {
        Self {
            delivery: Notifications::new(Arc::default(), replicated),
            contended: Contended::new(),
            shard_channels: None,
        }
    }

    /// Creates the notifications of a cluster's node.
    pub(super) fn of_a_node(subscribers: &Arc<Subscribers>, replicated: bool) -> Self {
        let delivery = Notifications::new(subscribers.clone(), replicated);
        Self {
            delivery,
            contended: Contended::new(),
            shard_channels: Some(ShardChannels::default()),
        }
    }

    /// Returns the shard channels, in a cluster.
    pub(super) fn shard_channels(&self) -> Option<&ShardChannels> {
        self.shard_channels.as_ref()
    }

    /// Delivers to this subscriber too, for as long as its manager keeps it.
    pub(super) fn add(&self, subscriber: &Arc<Subscriber>) {
        self.delivery.subscribers.add(subscriber);
    }

    /// Returns the ids of the subscribers whose channels every new connection subscribes to.
    pub(super) fn ids(&self) -> Vec<u64> {
        if self.shard_channels.is_some() {
            return Vec::new();
        }
        self.delivery.subscribers.all().iter().map(|subscriber| subscriber.id()).collect()
    }

    /// Records what the server's clock showed in the reply to a request sent at `sent_at`.
    pub(super) fn saw_clock(&self, sent_at: Instant, micros: u64) {
        self.delivery.saw_clock(sent_at, micros);
    }

    /// Makes claims ask again: the connection is gone, and messages with it.
    pub(super) fn interrupted(&self) {
        let Some(shard_channels) = &self.shard_channels else { return self.delivery.interrupted() };
        self.delivery.forget_clock();
        shard_channels.missed(None, &self.delivery.subscribers);
    }

    /// Returns whether the server ended a shard subscription because its slot has moved.
    pub(super) fn is_lost_subscription(&self, push: &PushInfo) -> bool {
        let (PushKind::SUnsubscribe, Some(shard_channels)) = (&push.kind, &self.shard_channels)
        else {
            return false;
        };
        let channel = push.data.first().and_then(|name| String::from_redis_value_ref(name).ok());
        let Some(channel) = channel else { return true };
        // A claim that needs it may have come while this process unsubscribed.
        self.missed_in(slot_of(&channel));
        !shard_channels.was_unneeded(&channel)
    }

    /// Makes the claims of this slot ask again: notifications may be lost.
    pub(super) fn missed_in(&self, slot: u16) {
        if let Some(shard_channels) = &self.shard_channels {
            shard_channels.missed(Some(slot), &self.delivery.subscribers);
        }
    }

    /// Delivers a push of the server, if it is a message.
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
        let Some(id) = subscriber_of(channel) else {
            tracing::warn!(lockattr.channel = channel, "ignored a message without a subscriber");
            return;
        };
        if let Some(name) = message.strip_prefix("wanted ") {
            self.contended.note(name);
        }
        self.delivery.deliver(id, message);
    }
}

/// Returns the channel of a subscriber.
pub(super) fn channel(id: u64) -> String {
    format!("{CHANNEL}{id:016x}")
}

fn subscriber_of(channel: &str) -> Option<u64> {
    let id = channel.strip_prefix(CHANNEL)?;
    let id = id.split_once(':').map_or(id, |(id, _tag)| id);
    u64::from_str_radix(id, 16).ok()
}
