//! The store in one Redis or Valkey server.
//!
//! A lock is a plain string with a TTL, so a `SET NX PX` client in any language is kept out by it
//! and keeps us out. What compares and changes in one step is a Lua script.

mod config;
mod line;
mod link;
mod scripts;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{FromRedisValue, Script, ScriptInvocation, Value};
use url::Url;

use super::{
    Acquire, Claim, LockKey, Release, Releasing, Renew, Renewal, Store, StoreError, StoreFuture,
};
use crate::settings::ServerSettings;
use crate::{Error, FencingToken, Holder, store_url};
use config::Config;
use link::Link;
use scripts::Scripts;

/// The fencing counter: one per server, not one per key, so that memory does not grow with the
/// number of keys ever locked.
const FENCE: &str = "lockattr:fence";

/// Most locks in one script: a longer one would keep the server's other clients waiting.
const BATCH: usize = 100;

/// Locks in one Redis or Valkey server (7.0 and later), over a small pool of connections.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `redis://` URL, or by hand.
/// All commands for one key travel on one connection, so that they keep their order.
///
/// A lock is a string under prefix and key. Besides, there is one key for all locks, the fencing
/// counter `lockattr:fence`. A user with these rights is enough:
///
/// ```text
/// ACL SETUSER locker on >… resetkeys ~lock:* ~lockattr:fence resetchannels -@all +hello +ping
///     +select +script|load +evalsha +get +set +del +pttl +pexpire +time
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
    links: Vec<Arc<Link>>,
    address: String,
    scripts: Arc<Scripts>,
}

impl RedisStore {
    /// The store that `url` names; its query may set `connections`, `connect_timeout`,
    /// `response_timeout` and `heartbeat`. Does not contact the server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL makes no sense.
    pub fn open(url: &str) -> Result<Self, Error> {
        let (url, settings) = store_url::parse(url)?;
        Self::at(url, &settings, ServerSettings::default())
    }

    pub(crate) fn at(
        url: Url,
        query: &[(String, String)],
        defaults: ServerSettings,
    ) -> Result<Self, Error> {
        let config = Config::read(url, query, defaults)?;
        let scripts = Arc::new(Scripts::new());
        let link = |_| Link::new(config.clone(), scripts.clone());
        let links = (0..config.connections).map(link).collect();
        Ok(Self { links, address: config.address, scripts })
    }

    /// The connection of a key, by number.
    fn place(&self, key: &LockKey) -> usize {
        let mut hasher = DefaultHasher::new();
        key.name().hash(&mut hasher);
        // The remainder is smaller than a `usize` length.
        (hasher.finish() % self.links.len() as u64) as usize
    }

    /// Runs a script by its digest; the client loads it where the server does not know it.
    async fn invoke<T: FromRedisValue>(
        &self,
        place: usize,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let link = &self.links[place];
        let mut live = link.get().await?;
        let outcome = script.invoke_async(&mut live.connection).await;
        link.note(&live, outcome)
    }

    /// Asks about many locks: one script for each connection and hundred, all at once, and the
    /// answers back in the order of `items`.
    async fn invoke_batch<I, A: Clone>(
        &self,
        items: &[I],
        script: &Script,
        key: impl Fn(&I) -> &LockKey,
        add: impl Fn(&mut ScriptInvocation<'_>, &I),
        answer: impl Fn(bool) -> A,
    ) -> Vec<Result<A, StoreError>> {
        let mut by_place = vec![Vec::new(); self.links.len()];
        for (index, item) in items.iter().enumerate() {
            by_place[self.place(key(item))].push(index);
        }
        let batches = by_place.iter().enumerate().flat_map(|(place, indexes)| {
            indexes.chunks(BATCH).map(move |indexes| (place, indexes))
        });
        let (add, key) = (&add, &key);
        let replies = batches.map(|(place, indexes)| async move {
            let mut invocation = script.prepare_invoke();
            for &index in indexes {
                invocation.key(key(&items[index]).name());
                add(&mut invocation, &items[index]);
            }
            (indexes, self.invoke::<Vec<bool>>(place, &invocation).await)
        });
        let missing = Err(StoreError::new("the server's answer was too short"));
        let mut answers = vec![missing; items.len()];
        for (indexes, reply) in join_all(replies).await {
            for (nth, &index) in indexes.iter().enumerate() {
                match &reply {
                    Ok(held) => {
                        if let Some(&held) = held.get(nth) {
                            answers[index] = Ok(answer(held));
                        }
                    }
                    Err(error) => answers[index] = Err(error.clone()),
                }
            }
        }
        answers
    }
}

impl Store for RedisStore {
    fn acquire<'a>(
        &'a self,
        claim: &'a Arc<Claim>,
        ttl: Duration,
    ) -> StoreFuture<'a, Result<Acquire, StoreError>> {
        Box::pin(async move {
            let mut invocation = self.scripts.acquire.key(claim.key().name());
            invocation.key(FENCE).arg(claim.value()).arg(millis(ttl));
            let reply = self.invoke(self.place(claim.key()), &invocation).await?;
            granted(reply).ok_or_else(nonsense)
        })
    }

    fn renew<'a>(
        &'a self,
        renewals: &'a [Renewal],
    ) -> StoreFuture<'a, Vec<Result<Renew, StoreError>>> {
        Box::pin(self.invoke_batch(
            renewals,
            &self.scripts.renew,
            |renewal| renewal.claim.key(),
            |invocation, renewal| {
                invocation.arg(renewal.claim.value()).arg(millis(renewal.ttl));
            },
            |held| if held { Renew::Renewed } else { Renew::NotHeld },
        ))
    }

    fn release<'a>(
        &'a self,
        releases: &'a [Releasing],
    ) -> StoreFuture<'a, Vec<Result<Release, StoreError>>> {
        Box::pin(self.invoke_batch(
            releases,
            &self.scripts.release,
            |release| release.claim.key(),
            |invocation, release| {
                invocation.arg(release.claim.value());
            },
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
            let reply = self.invoke(self.place(key), &self.scripts.holder.key(key.name())).await?;
            match reply {
                Value::Nil => Ok(None),
                reply => held_by(reply).map(Some).ok_or_else(nonsense),
            }
        })
    }

    fn ping(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        // Every connection, so that the first locks need not wait for theirs.
        Box::pin(async move {
            let pings = self.links.iter().map(|link| async move {
                let mut live = link.get().await?;
                let outcome = redis::cmd("PING").query_async::<()>(&mut live.connection).await;
                link.note(&live, outcome)
            });
            join_all(pings).await.into_iter().collect()
        })
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        (key.name() == FENCE).then(|| format!("`{FENCE}` is the name of the fencing counter"))
    }
}

/// Reads the answer of `acquire.lua`.
fn granted(reply: Value) -> Option<Acquire> {
    match reply {
        Value::Int(counter) => {
            let counter = u64::try_from(counter).ok()?;
            Some(Acquire::Acquired { fencing: FencingToken::from_counter(counter) })
        }
        reply => Some(Acquire::Held { holder: Some(Box::new(held_by(reply)?)) }),
    }
}

/// Reads a lock's value and its PTTL, which is negative for a key without end.
fn held_by(reply: Value) -> Option<Holder> {
    let Value::Array(parts) = reply else { return None };
    let [Value::BulkString(value), Value::Int(pttl)] = parts.as_slice() else { return None };
    let remaining = u64::try_from(*pttl).ok().map(Duration::from_millis);
    Some(Holder::from_value(&String::from_utf8_lossy(value), remaining))
}

fn nonsense() -> StoreError {
    StoreError::new("the server's answer makes no sense")
}

/// Rounded down: the server then lets go a little earlier than asked, by less than the drift that
/// every lease allows for.
fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.address)
            .field("connections", &self.links.len())
            .finish_non_exhaustive()
    }
}
