//! One server, over a small pool of connections.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures_util::future::join_all;
use redis::{FromRedisValue, ScriptInvocation};

use super::config::Config;
use super::link::Link;
use super::post::Post;
use super::scripts::Scripts;
use crate::store::{LockKey, StoreError};

/// The connection on which messages come in.
const INBOX: usize = 0;

/// The connections to one server. All commands for one key travel on one of them, its place, so
/// that they keep their order.
pub(super) struct Node {
    links: Vec<Arc<Link>>,
}

impl Node {
    pub(super) fn new(config: &Config, scripts: &Arc<Scripts>, post: &Arc<Post>) -> Self {
        let link = |place| {
            let post = (place == INBOX).then(|| post.clone());
            Link::new(config.clone(), scripts.clone(), post)
        };
        Self { links: (0..config.connections).map(link).collect() }
    }

    /// The number of a key's connection.
    pub(super) fn place(&self, key: &LockKey) -> usize {
        let mut hasher = DefaultHasher::new();
        key.name().hash(&mut hasher);
        // The remainder is smaller than a `usize` length.
        (hasher.finish() % self.links.len() as u64) as usize
    }

    /// Runs a script.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        place: usize,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let link = &self.links[place];
        let live = link.get().await?;
        link.invoke(live, script).await
    }

    /// Runs the script that takes a lock, if the server may grant one.
    pub(super) async fn acquire<T: FromRedisValue>(
        &self,
        place: usize,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let link = &self.links[place];
        let live = link.get().await?;
        if let Some(grants) = live.grants {
            grants.check(&link.config.address)?;
        }
        link.invoke(live, script).await
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
