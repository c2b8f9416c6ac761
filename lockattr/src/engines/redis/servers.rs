//! Where a key's lock is kept: on the one server, or on that of a cluster's nodes which has its slot.

use std::borrow::Cow;
use std::sync::Arc;

use redis::FromRedisValue;
use tokio::time::Instant;

use super::FENCE;
use super::call::Call;
use super::cluster::{Cluster, Member, slot_of, tag_of};
use super::config::Config;
use super::connection_slot::LiveConnection;
use super::counters::Counters;
use super::node::{Effect, Node};
use super::notifications::RedisNotifications;
use super::replicas::Answer;
use super::scripts::Scripts;
use crate::store::{Claim, LockKey, StoreError, Subscriber};

/// The servers of one store.
pub(super) enum Servers {
    One(Node, Arc<RedisNotifications>, Counters),
    Cluster(Arc<Cluster>, Counters),
}

/// The server that has a place, as far as is known.
pub(super) enum At<'a> {
    One(&'a Node, &'a RedisNotifications),
    Member(Arc<Member>),
}

/// What a script answered, and over what.
pub(super) struct Replied<T> {
    pub(super) answer: Answer<T>,
    /// Who keeps the clock of the server.
    pub(super) notifications: Arc<RedisNotifications>,
    /// The connection.
    pub(super) live: Arc<LiveConnection>,
}

/// Where commands keep their order, and one script may name several keys: a connection of the one
/// server, or a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place(u16);

impl Place {
    /// Which of the connections, or which slot.
    pub(super) fn number(self) -> usize {
        self.0.into()
    }
}

impl At<'_> {
    pub(super) fn node(&self) -> &Node {
        match self {
            Self::One(node, _) => node,
            Self::Member(member) => &member.node,
        }
    }

    pub(super) fn notifications(&self) -> &RedisNotifications {
        match self {
            Self::One(_, notifications) => notifications,
            Self::Member(member) => &member.notifications,
        }
    }
}

impl Servers {
    /// The one server that a URL names.
    pub(super) fn one(config: &Config, scripts: &Arc<Scripts>) -> Self {
        let notifications = Arc::new(RedisNotifications::new(config.timing.replicas > 0));
        Self::One(
            Node::new(config, scripts, Some(&notifications)),
            notifications,
            Counters::of_a_server(),
        )
    }

    /// The same for a cluster.
    pub(super) fn of_a_cluster(cluster: Arc<Cluster>) -> Self {
        Self::Cluster(cluster, Counters::of_a_cluster())
    }

    /// Where the lock of a key is.
    pub(super) fn place(&self, key: &LockKey) -> Place {
        match self {
            // There are at most 64 connections.
            Self::One(node, ..) => Place(u16::try_from(node.place(key)).unwrap_or_default()),
            Self::Cluster(..) => Place(slot_of(key.name())),
        }
    }

    /// Where the whole claim is, unless its keys are in several slots.
    pub(super) fn connection_for(&self, claim: &Claim) -> Option<Place> {
        let first = self.place(claim.key());
        match self {
            Self::One(..) => Some(first),
            Self::Cluster(..) => {
                claim.keys()[1..].iter().all(|key| self.place(key) == first).then_some(first)
            }
        }
    }

    /// The claim in as many parts as it has places, in the order in which everybody takes them.
    pub(super) fn parts(&self, claim: &Arc<Claim>) -> Vec<(Place, Arc<Claim>)> {
        if let Some(place) = self.connection_for(claim) {
            return vec![(place, claim.clone())];
        }
        let mut keys: Vec<_> = claim.keys().iter().map(|key| (self.place(key), key)).collect();
        // Stable: within a slot the keys keep their own order.
        keys.sort_by_key(|(place, _)| *place);
        keys.chunk_by(|(one, _), (other, _)| one == other)
            .map(|part| {
                let keys = part.iter().map(|&(_, key)| key.clone()).collect();
                (part[0].0, Arc::new(claim.part(keys)))
            })
            .collect()
    }

    /// The fencing counter of a place. In a cluster there is one for each slot, and goes with it.
    pub(super) fn fence(&self, place: Place) -> Cow<'static, str> {
        match self {
            Self::One(..) => FENCE.into(),
            Self::Cluster(..) => format!("{FENCE}:{{{}}}", tag_of(place.0)).into(),
        }
    }

    /// What has been seen of the counters, and which of them is that of a place.
    pub(super) fn counter(&self, place: Place) -> (&Counters, usize) {
        match self {
            Self::One(.., counters) => (counters, 0),
            Self::Cluster(_, counters) => (counters, place.number()),
        }
    }

    /// The server that has a place; `None` if nothing is known of the cluster yet.
    pub(super) fn at(&self, place: Place) -> Option<At<'_>> {
        match self {
            Self::One(node, notifications, _) => Some(At::One(node, notifications)),
            Self::Cluster(cluster, _) => cluster.owner_known(place.0).map(At::Member),
        }
    }

    /// It is unknown what became of a command for a place: another server may have it by now.
    pub(super) fn doubts(&self) {
        if let Self::Cluster(cluster, _) = self {
            cluster.refresh_soon();
        }
    }

    /// Runs a script for a place.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        place: Place,
        effect: Effect,
        script: &Call<'_>,
    ) -> Result<Replied<T>, StoreError> {
        match self {
            Self::One(node, notifications, _) => {
                let (answer, live) = node.invoke(place.number(), effect, script).await?;
                Ok(Replied { answer, notifications: notifications.clone(), live })
            }
            Self::Cluster(cluster, _) => cluster.invoke(place.0, effect, script).await,
        }
    }

    /// Ensures that a claim learns what is said in a place, before it asks there; `waits` if it
    /// may wait in the queue.
    pub(super) async fn hear(
        &self,
        place: Place,
        claim: &Arc<Claim>,
        waits: bool,
    ) -> Result<(), StoreError> {
        match self {
            Self::One(node, ..) if waits => node.subscribe(claim.token().subscriber()).await,
            // The subscriber was subscribed to with the connection, for those who only hold.
            Self::One(..) => Ok(()),
            Self::Cluster(cluster, _) => Box::pin(cluster.hear(place.0, claim)).await,
        }
    }

    /// Whether the connection for a place has brought an answer since then.
    pub(super) fn answered_since(&self, place: Place, since: Instant) -> bool {
        match self {
            Self::One(node, ..) => node.answered_since(place.number(), since),
            Self::Cluster(cluster, _) => cluster.answered_since(place.0, since),
        }
    }

    /// Serves this subscriber too.
    pub(super) fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        match self {
            Self::One(_, notifications, _) => notifications.add(subscriber),
            Self::Cluster(cluster, _) => cluster.subscribe(subscriber),
        }
    }

    /// Asks whether all answer.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        match self {
            Self::One(node, ..) => node.ping().await,
            Self::Cluster(cluster, _) => cluster.ping().await,
        }
    }

    /// The names of all that they have under `prefix`.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        match self {
            Self::One(node, ..) => node.names(prefix).await,
            Self::Cluster(cluster, _) => cluster.names(prefix).await,
        }
    }

    /// How many connections each server has for commands.
    pub(super) fn connections(&self) -> usize {
        match self {
            Self::One(node, ..) => node.connections(),
            Self::Cluster(cluster, _) => cluster.connections(),
        }
    }
}
