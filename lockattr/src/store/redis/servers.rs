//! Where a key's lock is kept: on the one server, or on that of a cluster's nodes which has its slot.

use std::borrow::Cow;
use std::sync::Arc;

use redis::FromRedisValue;
use tokio::time::Instant;

use super::FENCE;
use super::call::Call;
use super::cluster::{Cluster, slot_of, tag_of};
use super::config::Config;
use super::node::{Does, Node};
use super::post::Post;
use super::replicas::Answer;
use super::scripts::Scripts;
use crate::store::{Claim, Inbox, LockKey, StoreError};

/// The servers of one store.
pub(super) enum Servers {
    One(Node, Arc<Post>),
    Cluster(Arc<Cluster>),
}

/// Where commands keep their order, and one script may name several keys: a connection of the one
/// server, or a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place(u16);

impl Servers {
    /// The one server that a URL names.
    pub(super) fn one(config: &Config, scripts: &Arc<Scripts>) -> Self {
        let post = Arc::new(Post::new(config.timing.replicas > 0));
        Self::One(Node::new(config, scripts, Some(&post)), post)
    }

    /// Where the lock of a key is.
    pub(super) fn place(&self, key: &LockKey) -> Place {
        match self {
            // There are at most 64 connections.
            Self::One(node, _) => Place(u16::try_from(node.place(key)).unwrap_or_default()),
            Self::Cluster(_) => Place(slot_of(key.name())),
        }
    }

    /// Where the whole claim is, unless its keys are in several slots.
    pub(super) fn place_of(&self, claim: &Claim) -> Option<Place> {
        let first = self.place(claim.key());
        match self {
            Self::One(..) => Some(first),
            Self::Cluster(_) => {
                claim.keys()[1..].iter().all(|key| self.place(key) == first).then_some(first)
            }
        }
    }

    /// The claim in as many parts as it has places, in the order in which everybody takes them.
    pub(super) fn parts(&self, claim: &Arc<Claim>) -> Vec<(Place, Arc<Claim>)> {
        if let Some(place) = self.place_of(claim) {
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
            Self::Cluster(_) => format!("{FENCE}:{{{}}}", tag_of(place.0)).into(),
        }
    }

    /// Runs a script for a place; and who keeps the clock of the server that answered.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        place: Place,
        does: Does,
        script: &Call<'_>,
    ) -> Result<(Answer<T>, Arc<Post>), StoreError> {
        match self {
            Self::One(node, post) => {
                Ok((node.invoke(place.0.into(), does, script).await?, post.clone()))
            }
            Self::Cluster(cluster) => cluster.invoke(place.0, does, script).await,
        }
    }

    /// Sees to it that a claim is told what is said in a place, before it asks there; `waits` if it
    /// may stand in line.
    pub(super) async fn hear(
        &self,
        place: Place,
        claim: &Arc<Claim>,
        waits: bool,
    ) -> Result<(), StoreError> {
        match self {
            Self::One(node, _) if waits => node.subscribe(claim.token().inbox()).await,
            // The inbox was subscribed to with the connection, for those who only hold.
            Self::One(..) => Ok(()),
            Self::Cluster(cluster) => cluster.hear(place.0, claim).await,
        }
    }

    /// Whether the connection for a place has brought an answer since then.
    pub(super) fn answered_since(&self, place: Place, since: Instant) -> bool {
        match self {
            Self::One(node, _) => node.answered_since(place.0.into(), since),
            Self::Cluster(cluster) => cluster.answered_since(place.0, since),
        }
    }

    /// Serves this inbox too.
    pub(super) fn listen(&self, inbox: &Arc<Inbox>) {
        match self {
            Self::One(_, post) => post.add(inbox),
            Self::Cluster(cluster) => cluster.listen(inbox),
        }
    }

    /// Asks whether all answer.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        match self {
            Self::One(node, _) => node.ping().await,
            Self::Cluster(cluster) => cluster.ping().await,
        }
    }

    /// The names of all that they have under `prefix`.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        match self {
            Self::One(node, _) => node.names(prefix).await,
            Self::Cluster(cluster) => cluster.names(prefix).await,
        }
    }

    /// How many connections each server has for commands.
    pub(super) fn connections(&self) -> usize {
        match self {
            Self::One(node, _) => node.connections(),
            Self::Cluster(cluster) => cluster.connections(),
        }
    }
}
