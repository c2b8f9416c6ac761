//! The store in one Redis or Valkey server.
//!
//! A lock is a plain string with a TTL, so a `SET NX PX` client in any language is kept out by it
//! and keeps us out. What compares and changes in one step is a Lua script.

mod config;
mod connect;
mod line;
mod link;
mod listener;
mod node;
mod post;
mod request;
mod restart;
mod scripts;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{ScriptInvocation, Value};
use tokio::time::Instant;
use url::Url;

use super::{
    Acquire, Acquiring, Inbox, LockKey, Release, Releasing, Renew, Renewal, Store, StoreError,
    StoreFuture, Waiting,
};
use crate::settings::ServerSettings;
use crate::store_url::StoreUrl;
use crate::{Error, Holder};
use config::Config;
use node::Node;
use post::Post;
use scripts::Scripts;

/// The fencing counter: one per server, not one per key, so that memory does not grow with the
/// number of keys ever locked.
const FENCE: &str = "lockattr:fence";

/// What the names of the lines begin with: of locks that have a hash tag, and of those that become
/// one. Apart, so that `a` and `{a}` have not the same line.
const LINE: &str = "lockattr:line:";
const LINE_OF: &str = "lockattr:line-of:";

/// Most locks in one script: a longer one would keep the server's other clients waiting.
const BATCH: usize = 100;

/// Locks in one Redis or Valkey server (7.0 and later), over a small pool of connections.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `redis://` URL, or by hand.
/// All commands for one key travel on one connection, so that they keep their order.
///
/// A lock is a string under prefix and key, or a sorted set if it is shared; while others wait for
/// it, `lockattr:line:…` is their line. Besides, there is one key for all locks, the fencing counter
/// `lockattr:fence`. A user with these rights is enough:
///
/// ```text
/// ACL SETUSER locker on >… resetkeys ~lock:* ~lockattr:* resetchannels &lockattr:inbox:* -@all
///     +hello +ping +select +script|load +evalsha +subscribe +publish +get +set +del +exists +pttl
///     +pexpire +time +zadd +zcard +zrange +zrem +zremrangebyscore +zrank +zscore
/// ```
///
/// ```
/// use lockattr::store::RedisStore;
///
/// let store = RedisStore::open("redis://:secret@db.example/2?connections=4")?;
/// assert!(!format!("{store:?}").contains("secret"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct RedisStore {
    node: Node,
    address: String,
    scripts: Arc<Scripts>,
    post: Arc<Post>,
}

impl RedisStore {
    /// The store that `url` names; its query may set `connections`, `connect_timeout`,
    /// `response_timeout` and `heartbeat`. Does not contact the server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL makes no sense.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(urls, &query, ServerSettings::default())
    }

    pub(crate) fn at(
        urls: Vec<Url>,
        query: &[(String, String)],
        defaults: ServerSettings,
    ) -> Result<Self, Error> {
        let Ok([url]) = <[Url; 1]>::try_from(urls) else {
            return Err(Error::InvalidOptions("this URL takes one host".into()));
        };
        Ok(Self::of(Config::read(url, query, defaults)?))
    }

    /// One of a quorum, whose other servers take its place while it may have forgotten leases, none
    /// of them longer than this.
    pub(crate) fn one_of_many(
        url: Url,
        query: &[(String, String)],
        defaults: ServerSettings,
        forgets: Option<Duration>,
    ) -> Result<Self, Error> {
        let config = Config::read(url, query, defaults)?;
        Ok(Self::of(Config { forgets, ..config }))
    }

    fn of(config: Config) -> Self {
        let scripts = Arc::new(Scripts::new());
        let post = Arc::<Post>::default();
        let node = Node::new(&config, &scripts, &post);
        Self { node, address: config.address, scripts, post }
    }

    /// Asks about many claims: one script for each connection and hundred, all at once, and the
    /// answers back in the order of `items`.
    async fn invoke_batch<'s, I, A: Clone>(
        &self,
        items: &[I],
        script: impl Fn(&[&I]) -> ScriptInvocation<'s>,
        key: impl Fn(&I) -> &LockKey,
        answer: impl Fn(bool) -> A,
    ) -> Vec<Result<A, StoreError>> {
        let mut by_place = HashMap::<_, Vec<_>>::new();
        for (index, item) in items.iter().enumerate() {
            by_place.entry(self.node.place(key(item))).or_default().push(index);
        }
        let batches = by_place.iter().flat_map(|(&place, indexes)| {
            indexes.chunks(BATCH).map(move |indexes| (place, indexes))
        });
        let missing = StoreError::new("the server's answer was too short");
        if let [item] = items {
            let held =
                self.node.invoke::<String>(self.node.place(key(item)), &script(&[item])).await;
            let held = held.and_then(|held| held.bytes().next().ok_or(missing));
            return vec![held.map(|held| answer(held == b'1'))];
        }
        let script = &script;
        let replies = batches.map(|(place, indexes)| async move {
            let asked: Vec<_> = indexes.iter().map(|&index| &items[index]).collect();
            (indexes, self.node.invoke::<String>(place, &script(&asked)).await)
        });
        let mut answers = vec![Err(missing); items.len()];
        for (indexes, reply) in join_all(replies).await {
            for (nth, &index) in indexes.iter().enumerate() {
                match &reply {
                    Ok(held) => {
                        if let Some(&held) = held.as_bytes().get(nth) {
                            answers[index] = Ok(answer(held == b'1'));
                        }
                    }
                    Err(error) => answers[index] = Err(error.clone()),
                }
            }
        }
        answers
    }

    /// Asks for all that a claim names.
    async fn ask(&self, asked: &Acquiring) -> Result<Acquire, StoreError> {
        let Acquiring { claim, ttl, waiting, .. } = asked;
        let waits = *waiting != Waiting::Not;
        if waits {
            // First of all: a grant that is told to nobody would be passed on.
            self.node.subscribe(claim.token().inbox()).await?;
            claim.enters_line(*ttl, *waiting);
        }
        let sent = Instant::now();
        let script = request::acquire(&self.scripts, asked);
        let reply = self.node.acquire(self.node.place(claim.key()), &script).await?;
        let (answer, clock) = request::granted(reply, waits).ok_or_else(nonsense)?;
        if let Some(micros) = clock {
            self.post.saw_clock(sent, micros);
        }
        Ok(answer)
    }
}

impl Store for RedisStore {
    fn acquire<'a>(&'a self, asked: &'a Acquiring) -> StoreFuture<'a, Result<Acquire, StoreError>> {
        Box::pin(self.ask(asked))
    }

    fn listen(&self, inbox: &Arc<Inbox>) {
        self.post.add(inbox);
    }

    fn renew<'a>(
        &'a self,
        renewals: &'a [Renewal],
    ) -> StoreFuture<'a, Vec<Result<Renew, StoreError>>> {
        Box::pin(self.invoke_batch(
            renewals,
            |renewals| request::renew(&self.scripts, renewals),
            |renewal| renewal.claim.key(),
            |held| if held { Renew::Renewed } else { Renew::NotHeld },
        ))
    }

    fn release<'a>(
        &'a self,
        releases: &'a [Releasing],
    ) -> StoreFuture<'a, Vec<Result<Release, StoreError>>> {
        Box::pin(self.invoke_batch(
            releases,
            |releases| request::release(&self.scripts, releases),
            |release| release.claim.key(),
            |held| {
                if held { Release::Released } else { Release::NotHeld }
            },
        ))
    }

    fn holder<'a>(
        &'a self,
        key: &'a LockKey,
    ) -> StoreFuture<'a, Result<Option<Holder>, StoreError>> {
        Box::pin(async move {
            let script = self.scripts.holder.key(key.name());
            let reply = self.node.invoke(self.node.place(key), &script).await?;
            match reply {
                Value::Nil => Ok(None),
                reply => request::held_by(reply).map(Some).ok_or_else(nonsense),
            }
        })
    }

    fn ping(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(self.node.ping())
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        let ours = [FENCE, LINE, LINE_OF].iter().any(|name| key.name().starts_with(name));
        ours.then(|| "names like this are the store's own".into())
    }
}

fn nonsense() -> StoreError {
    StoreError::new("the server's answer makes no sense")
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.address)
            .field("connections", &self.node.connections())
            .finish_non_exhaustive()
    }
}
