//! A cluster: which node owns which slot, and how a request follows a slot that moves.
//!
//! A command that may have taken effect is never sent again, only one that a node refused.

mod map;
mod member;
mod refresh;
mod shard_channels;
mod slot;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use redis::FromRedisValue;
use tokio::time::{Instant, sleep};
use url::{Host, Url};

use super::call::Call;
use super::config::{Config, Server};
use super::endpoint::Endpoint;
use super::node::Effect;
use super::scripts::Scripts;
use super::servers::RoutedReply;
use super::tls;
use crate::Error;
use crate::lock::server_options::ServerOptions;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::{Claim, StoreError, Subscriber, Subscribers};
pub(super) use member::Member;
use member::Refused;
pub(super) use shard_channels::ShardChannels;
pub(super) use slot::{hash_tag, slot_of, tag_of};

/// How often a request is redirected before it fails.
const REDIRECTIONS: usize = 8;

/// How long a request for keys that are being moved waits before it is sent again.
const PAUSE: Duration = Duration::from_millis(20);

/// The nodes of one cluster.
pub(super) struct Cluster {
    /// Some of its nodes, as the program names them.
    seeds: Vec<String>,
    /// How to reach a node, wherever it is. Its host is not used.
    template: Endpoint,
    timing: ServerOptions,
    scripts: Arc<Scripts>,
    subscribers: Arc<Subscribers>,
    known: Mutex<Known>,
    /// Held by the caller that requests the map.
    refresh_lock: tokio::sync::Mutex<()>,
    /// How often the map was replaced.
    version: AtomicU64,
    /// Whether a task is about to request the map.
    refreshing: AtomicBool,
    me: Weak<Self>,
}

/// The map of the cluster, as far as it is known.
#[derive(Default)]
struct Known {
    /// By address.
    members: HashMap<String, Arc<Member>>,
    /// By slot; empty before the first map.
    owners: Vec<Option<Arc<Member>>>,
    since: Option<Instant>,
}

/// A request under way.
struct Target {
    slot: u16,
    member: Arc<Member>,
    /// Whether another node redirected this one request to `member`.
    asking: bool,
    redirections: usize,
    /// When to stop waiting for keys that are being moved.
    until: Instant,
}

impl Cluster {
    pub(super) fn open(
        urls: &[Url],
        query: &[(String, String)],
        timing: ServerOptions,
        scripts: &Arc<Scripts>,
    ) -> Result<Arc<Self>, Error> {
        let invalid = |sentence: &str| Error::InvalidOptions(sentence.into());
        let mut query = query.to_vec();
        let tls_option =
            query.iter().position(|(name, _)| name == "tls").map(|at| query.remove(at).1);
        let tls = tls::uses_tls("redis+cluster", tls_option.as_deref())?;
        let scheme = if tls { "rediss" } else { "redis" };
        let [url, ..] = urls else { return Err(invalid("`redis+cluster://` needs a host")) };
        if !matches!(url.path(), "" | "/") {
            return Err(invalid("a cluster has no databases: leave the path out of its URL"));
        }
        let seeds = urls.iter().map(address).collect::<Option<_>>();
        let seeds = seeds.ok_or_else(|| invalid("`redis+cluster://` needs a host"))?;
        let mut url = url.clone();
        // The URL standard knows neither scheme, so it allows the change.
        if url.set_scheme(scheme).is_err() {
            return Err(invalid("the cluster's URL cannot be read"));
        }
        let config = Config::read(vec![url], &query, timing)?;
        // A URL with one host, which is no sentinel, names its server.
        let Server::Fixed(template) = config.server else {
            return Err(invalid("the cluster's URL cannot be read"));
        };
        Ok(Self::new(seeds, Endpoint::clone(&template), config.timing, scripts))
    }

    /// `seeds` are addresses of some nodes; `template` says how each node is reached.
    pub(super) fn new(
        seeds: Vec<String>,
        template: Endpoint,
        timing: ServerOptions,
        scripts: &Arc<Scripts>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            seeds,
            template,
            timing,
            scripts: scripts.clone(),
            subscribers: Arc::default(),
            known: Mutex::default(),
            refresh_lock: tokio::sync::Mutex::default(),
            version: AtomicU64::new(0),
            refreshing: AtomicBool::new(false),
            me: me.clone(),
        })
    }

    /// Delivers notifications to this subscriber too.
    pub(super) fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.subscribers.add(subscriber);
    }

    /// Returns the owner of a slot, if it is known.
    pub(super) fn owner_known(&self, slot: u16) -> Option<Arc<Member>> {
        self.known().owner(slot)
    }

    /// Runs a script whose keys are all in this slot.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        slot: u16,
        effect: Effect,
        script: &Call<'_>,
    ) -> Result<RoutedReply<T>, StoreError> {
        let mut target = self.target(slot).await?;
        loop {
            match target.member.invoke(slot, effect, target.asking, script).await {
                Ok((reply, live)) => {
                    return Ok(RoutedReply {
                        reply,
                        notifications: target.member.notifications.clone(),
                        live,
                    });
                }
                Err(refused) => self.follow_redirect(&mut target, refused).await?,
            }
        }
    }

    /// Ensures that the claim receives the notifications of this slot.
    pub(super) async fn ensure_subscribed(
        &self,
        slot: u16,
        claim: &Arc<Claim>,
    ) -> Result<(), StoreError> {
        if self.subscribers.get(claim.token().subscriber()).is_none() {
            return Ok(());
        }
        let mut target = self.target(slot).await?;
        loop {
            match target.member.ensure_subscribed(slot, claim).await {
                Ok(()) => return Ok(()),
                Err(refused) => self.follow_redirect(&mut target, refused).await?,
            }
        }
    }

    /// Checks that all masters reply.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        self.refresh().await?;
        let members: Vec<_> = self.known().members.values().cloned().collect();
        join_all(members.iter().map(|member| member.ping())).await.into_iter().collect()
    }

    /// Returns the names of all keys under `prefix` on the masters.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        // The keys of an unknown master would be missing.
        self.refresh().await?;
        let mut members: Vec<_> = self.known().owners.iter().flatten().cloned().collect();
        members.sort_unstable_by_key(Arc::as_ptr);
        members.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let names = join_all(members.iter().map(|member| member.names(prefix))).await;
        Ok(names.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Returns how many connections each node has for commands.
    pub(super) fn connections(&self) -> usize {
        self.timing.redis_connections()
    }

    /// Starts a request at the owner of the slot.
    async fn target(&self, slot: u16) -> Result<Target, StoreError> {
        let until = Instant::now() + self.timing.response_timeout;
        let member = self.owner(slot).await?;
        Ok(Target { slot, member, asking: false, redirections: 0, until })
    }

    /// Decides where to send a request that a node has refused.
    async fn follow_redirect(
        &self,
        target: &mut Target,
        refused: Refused,
    ) -> Result<(), StoreError> {
        target.redirections += usize::from(!matches!(refused, Refused::TryAgain(_)));
        match refused {
            Refused::Moved(_) | Refused::Ask(_) if target.redirections > REDIRECTIONS => {
                self.refresh_soon();
                let sentence = format!(
                    "the nodes of the cluster disagree about the owner of slot {}",
                    target.slot
                );
                return Err(StoreError::new(sentence).not_sent());
            }
            Refused::Moved(address) => {
                target.member = self.moved(target.slot, &target.member, &address)?;
                target.asking = false;
            }
            Refused::Ask(address) => {
                target.member = self.member(&address)?;
                target.asking = true;
            }
            Refused::TryAgain(error) if Instant::now() + PAUSE > target.until => return Err(error),
            Refused::TryAgain(_) => {
                sleep(PAUSE).await;
                target.member = self.owner(target.slot).await?;
                target.asking = false;
            }
            // Nothing was sent, so the request may go to the slot's new owner.
            Refused::Away(error) if error.is_not_sent() && target.redirections <= REDIRECTIONS => {
                self.refresh().await?;
                let current = self.owner(target.slot).await?;
                if Arc::ptr_eq(&current, &target.member) {
                    return Err(error);
                }
                (target.member, target.asking) = (current, false);
            }
            Refused::Away(error) => {
                self.refresh_soon();
                return Err(error);
            }
            Refused::Other(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns the owner of a slot, and requests the map if it is unknown.
    async fn owner(&self, slot: u16) -> Result<Arc<Member>, StoreError> {
        if let Some(owner) = self.known().owner(slot) {
            return Ok(owner);
        }
        self.refresh().await?;
        self.known().owner(slot).ok_or_else(|| {
            StoreError::new(format!("no node of the cluster owns slot {slot}")).not_sent()
        })
    }

    /// Records that the slot is at `address` now, as its former owner replied.
    fn moved(&self, slot: u16, by: &Member, address: &str) -> Result<Arc<Member>, StoreError> {
        let current = self.member(address)?;
        let before = match self.known().owners.get_mut(usize::from(slot)) {
            Some(owner) => owner.replace(current.clone()),
            None => None,
        };
        current.node.clear_raised();
        by.notifications.missed_in(slot);
        if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, &current)) {
            before.notifications.missed_in(slot);
        }
        self.refresh_soon();
        Ok(current)
    }

    /// Returns the node at this address, and adds it if it is new.
    fn member(&self, address: &str) -> Result<Arc<Member>, StoreError> {
        let mut known = self.known();
        if let Some(member) = known.members.get(address) {
            return Ok(member.clone());
        }
        let member = self.new_member(address)?;
        known.members.insert(address.to_owned(), member.clone());
        Ok(member)
    }

    fn new_member(&self, address: &str) -> Result<Arc<Member>, StoreError> {
        let invalid = || StoreError::new(format!("`{address}` is not an address")).not_sent();
        let (host, port) = address.rsplit_once(':').ok_or_else(invalid)?;
        let bracketed = match host.contains(':') && !host.starts_with('[') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        };
        // Also refuses what no URL could name.
        Host::parse(&bracketed).map_err(|_| invalid())?;
        let endpoint = self.template.at(host, port.parse().map_err(|_| invalid())?, address);
        let config = Config::at(endpoint, self.timing.clone());
        let config = config.map_err(|error| StoreError::new(error.to_string()).not_sent())?;
        Ok(Arc::new(Member::new(address.to_owned(), &config, &self.scripts, &self.subscribers)))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

impl Known {
    fn owner(&self, slot: u16) -> Option<Arc<Member>> {
        self.owners.get(usize::from(slot)).cloned().flatten()
    }
}

/// Returns host and port of a URL, by default the port of Redis.
fn address(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port().unwrap_or(6379)))
}

/// Lets fuzzers call the parser of the map.
#[cfg(fuzzing)]
pub(super) fn is_a_map(reply: redis::Value) -> bool {
    map::read(reply).is_some()
}
