//! Which server keeps a key's lock: the only one, or the cluster node that owns its slot.

use std::borrow::Cow;
use std::sync::Arc;

use redis::FromRedisValue;

use super::FENCE;
use super::call::Call;
use super::cluster::{Cluster, Member, slot_of, tag_of};
use super::config::Config;
use super::connection_slot::LiveConnection;
use super::counters::Counters;
use super::node::{Effect, Node};
use super::notifications::RedisNotifications;
use super::replicas::ReplicatedReply;
use super::scripts::Scripts;
use crate::store::{Claim, LockKey, StoreError, Subscriber};

/// The servers of one store.
pub(super) enum Servers {
    One(Node, Arc<RedisNotifications>, Counters),
    Cluster(Arc<Cluster>, Counters),
}

/// The server of a route, as far as is known.
pub(super) enum RoutedServer<'a> {
    One(&'a Node, &'a RedisNotifications),
    Member(Arc<Member>),
}

/// The reply of a script, and where it came from.
pub(super) struct RoutedReply<T> {
    pub(super) reply: ReplicatedReply<T>,
    /// Records the server's clock.
    pub(super) notifications: Arc<RedisNotifications>,
    pub(super) live: Arc<LiveConnection>,
}

/// A connection of the single server, or a slot of a cluster. Commands on one route keep their
/// order, and one script may name several of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Route(u16);

impl Route {
    /// Returns the index of the connection, or the slot.
    pub(super) fn index(self) -> usize {
        self.0.into()
    }
}

impl RoutedServer<'_> {
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
    /// Returns the single server that a URL names.
    pub(super) fn one(config: &Config, scripts: &Arc<Scripts>) -> Self {
        let notifications = Arc::new(RedisNotifications::new(config.timing.replicas > 0));
        Self::One(
            Node::new(config, scripts, Some(&notifications)),
            notifications,
            Counters::of_a_server(),
        )
    }

    /// Returns the servers of a cluster.
    pub(super) fn of_a_cluster(cluster: Arc<Cluster>) -> Self {
        Self::Cluster(cluster, Counters::of_a_cluster())
    }

    /// Returns the route of a key's lock.
    pub(super) fn route(&self, key: &LockKey) -> Route {
        match self {
            // There are at most 64 connections.
            Self::One(node, ..) => Route(u16::try_from(node.index(key)).unwrap_or_default()),
            Self::Cluster(..) => Route(slot_of(key.name())),
        }
    }

    /// Returns the route of the whole claim, unless its keys are in several slots.
    pub(super) fn single_route(&self, claim: &Claim) -> Option<Route> {
        let first = self.route(claim.key());
        match self {
            Self::One(..) => Some(first),
            Self::Cluster(..) => {
                claim.keys()[1..].iter().all(|key| self.route(key) == first).then_some(first)
            }
        }
    }

    /// Splits the claim by route, in the order in which every process acquires the parts.
    pub(super) fn parts(&self, claim: &Arc<Claim>) -> Vec<(Route, Arc<Claim>)> {
        if let Some(route) = self.single_route(claim) {
            return vec![(route, claim.clone())];
        }
        let mut keys: Vec<_> = claim.keys().iter().map(|key| (self.route(key), key)).collect();
        // Stable: within a slot the keys keep their order.
        keys.sort_by_key(|(route, _)| *route);
        keys.chunk_by(|(one, _), (other, _)| one == other)
            .map(|part| {
                let keys = part.iter().map(|&(_, key)| key.clone()).collect();
                (part[0].0, Arc::new(claim.part(keys)))
            })
            .collect()
    }

    /// Returns the fencing counter of a route. In a cluster, each slot has one, which moves with
    /// it.
    pub(super) fn fence(&self, route: Route) -> Cow<'static, str> {
        match self {
            Self::One(..) => FENCE.into(),
            Self::Cluster(..) => format!("{FENCE}:{{{}}}", tag_of(route.0)).into(),
        }
    }

    /// Returns the tokens seen so far, and the index of this route's counter.
    pub(super) fn counter(&self, route: Route) -> (&Counters, usize) {
        match self {
            Self::One(.., counters) => (counters, 0),
            Self::Cluster(_, counters) => (counters, route.index()),
        }
    }

    /// Returns the server of a route; `None` if the cluster's map is not known yet.
    pub(super) fn routed_server(&self, route: Route) -> Option<RoutedServer<'_>> {
        match self {
            Self::One(node, notifications, _) => Some(RoutedServer::One(node, notifications)),
            Self::Cluster(cluster, _) => cluster.owner_known(route.0).map(RoutedServer::Member),
        }
    }

    /// Refreshes a cluster's map: a command's outcome is unknown, and another server may own the
    /// route now.
    pub(super) fn refresh_soon(&self) {
        if let Self::Cluster(cluster, _) = self {
            cluster.refresh_soon();
        }
    }

    /// Runs a script on a route.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        route: Route,
        effect: Effect,
        script: &Call<'_>,
    ) -> Result<RoutedReply<T>, StoreError> {
        match self {
            Self::One(node, notifications, _) => {
                let (reply, live) = node.invoke(route.index(), effect, script).await?;
                Ok(RoutedReply { reply, notifications: notifications.clone(), live })
            }
            Self::Cluster(cluster, _) => cluster.invoke(route.0, effect, script).await,
        }
    }

    /// Ensures that a claim receives the notifications of a route, before it sends a request there.
    /// `may_wait`: the claim may join the queue.
    pub(super) async fn ensure_subscribed(
        &self,
        route: Route,
        claim: &Arc<Claim>,
        may_wait: bool,
    ) -> Result<(), StoreError> {
        match self {
            Self::One(node, ..) if may_wait => node.subscribe(claim.token().subscriber()).await,
            // The connection came with a subscription, which is enough for a claim that only holds.
            Self::One(..) => Ok(()),
            Self::Cluster(cluster, _) => Box::pin(cluster.ensure_subscribed(route.0, claim)).await,
        }
    }

    /// Delivers notifications to this subscriber too.
    pub(super) fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        match self {
            Self::One(_, notifications, _) => notifications.add(subscriber),
            Self::Cluster(cluster, _) => cluster.subscribe(subscriber),
        }
    }

    /// Checks that all servers reply.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        match self {
            Self::One(node, ..) => node.ping().await,
            Self::Cluster(cluster, _) => cluster.ping().await,
        }
    }

    /// Returns the names of all keys under `prefix`.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        match self {
            Self::One(node, ..) => node.names(prefix).await,
            Self::Cluster(cluster, _) => cluster.names(prefix).await,
        }
    }

    /// Returns how many connections each server has for commands.
    pub(super) fn connections(&self) -> usize {
        match self {
            Self::One(node, ..) => node.connections(),
            Self::Cluster(cluster, _) => cluster.connections(),
        }
    }
}
