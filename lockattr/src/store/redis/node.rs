//! One server, over a small pool of connections.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures_util::future::join_all;
use redis::{FromRedisValue, ScriptInvocation};

use super::config::Config;
use super::link::{Link, Live};
use super::native::Deleted;
use super::post::Post;
use super::replicas::{Answer, Replicas};
use super::scripts::Scripts;
use crate::store::{LockKey, Releasing, StoreError};

/// The connection on which messages come in.
const INBOX: usize = 0;

/// The connections to one server. All commands for one key travel on one of them, its place, so
/// that they keep their order.
pub(super) struct Node {
    links: Vec<Arc<Link>>,
    /// Over how many of them the keys are spread.
    spread: usize,
    replicas: Replicas,
}

/// Where a command travels, and whether its answer counts only once replicas have what it changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    link: usize,
    replicated: bool,
}

impl Node {
    pub(super) fn new(config: &Config, scripts: &Arc<Scripts>, post: &Arc<Post>) -> Self {
        let link = |place| {
            let post = (place == INBOX).then(|| post.clone());
            Link::new(config.clone(), scripts.clone(), post)
        };
        let replicas = Replicas::new(&config.timing);
        let spread = config.timing.connections;
        let links = spread + usize::from(replicas.are_needed());
        Self { links: (0..links).map(link).collect(), spread, replicas }
    }

    /// The place of a key.
    pub(super) fn place(&self, key: &LockKey) -> Place {
        let mut hasher = DefaultHasher::new();
        key.name().hash(&mut hasher);
        // The remainder is smaller than a `usize` length.
        let link = (hasher.finish() % self.spread as u64) as usize;
        Place { link, replicated: false }
    }

    /// Where leases are made longer. The server keeps a connection waiting for replicas; renewals
    /// would come too late behind acquisitions that wait so, and have one of their own.
    pub(super) fn renewals(&self, key: &LockKey) -> Place {
        match self.replicas.are_needed() {
            true => Place { link: self.spread, replicated: true },
            false => self.place(key),
        }
    }

    /// Where leases are made shorter: behind the renewals that are under way, or one of those would
    /// make it long again.
    pub(super) fn shortened(&self, key: &LockKey) -> Place {
        Place { replicated: false, ..self.renewals(key) }
    }

    /// Runs a script.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        place: Place,
        script: &ScriptInvocation<'_>,
    ) -> Result<Answer<T>, StoreError> {
        let link = &self.links[place.link];
        let live = link.get().await?;
        self.send(link, live, place, script).await
    }

    /// Runs the script that takes a lock, if the server may grant one.
    pub(super) async fn acquire<T: FromRedisValue>(
        &self,
        key: &LockKey,
        script: &ScriptInvocation<'_>,
    ) -> Result<Answer<T>, StoreError> {
        let place = Place { replicated: self.replicas.are_needed(), ..self.place(key) };
        let link = &self.links[place.link];
        let live = link.get().await?;
        if let Some(grants) = live.grants {
            grants.check(&live.address)?;
        }
        self.send(link, live, place, script).await
    }

    async fn send<T: FromRedisValue>(
        &self,
        link: &Link,
        mut live: Live,
        place: Place,
        script: &ScriptInvocation<'_>,
    ) -> Result<Answer<T>, StoreError> {
        if place.replicated {
            let outcome = self.replicas.invoke(&mut live.connection, script).await;
            return link.note(&live, outcome);
        }
        Ok(Answer::alone(link.invoke(live, script).await?))
    }

    /// Gives a lock back by a command of the server's own, if it has one.
    pub(super) async fn release(
        &self,
        place: Place,
        releasing: &Releasing,
    ) -> Result<Deleted, StoreError> {
        let link = &self.links[place.link];
        let mut live = link.get().await?;
        let Some(native) = live.native.clone() else { return Ok(Deleted::AskTheScript) };
        let outcome = native.release(&mut live.connection, releasing).await;
        link.note(&live, outcome)
    }

    /// Sees to it that messages for this inbox come in.
    pub(super) async fn subscribe(&self, inbox: u64) -> Result<(), StoreError> {
        self.links[INBOX].subscribe(inbox).await
    }

    /// Asks on every connection whether the server answers, so that the first locks need not wait
    /// for theirs.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        let pings = self.links.iter().map(|link| async move {
            let mut live = link.get().await?;
            let outcome = redis::cmd("PING").query_async::<()>(&mut live.connection).await;
            link.note(&live, outcome)
        });
        join_all(pings).await.into_iter().collect()
    }

    /// How many connections there are.
    pub(super) fn connections(&self) -> usize {
        self.links.len()
    }
}
