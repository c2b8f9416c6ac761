//! Reads a `redlock://` URL.

use std::collections::HashSet;
use std::sync::Arc;

use url::Url;

use super::RedlockStore;
use super::clients::RedlockOptions;
use super::members::Members;
use crate::Error;
use crate::engines::redis::uses_tls;
use crate::lock::server_options::ServerOptions;
use crate::lock::settings::duration;
use crate::store::url::StoreUrl;
use crate::store::{AnyStore, RedisStore};

impl RedlockStore {
    /// Makes the store that `url` names:
    /// `redlock://[[user]:password@]host[:port],host,…[/database]`, with three hosts or more. Its
    /// query may set `max_ttl` and `clock_skew`, or `durable=true` (see
    /// [`MAX_TTL`](Self::MAX_TTL)), `tls=true`, and whatever a [`RedisStore`] accepts. Does not
    /// contact the servers.
    ///
    /// ```
    /// use lockattr::store::RedlockStore;
    ///
    /// let store = RedlockStore::open("redlock://:secret@db-1,db-2,db-3/?max_ttl=5m")?;
    /// assert!(!format!("{store:?}").contains("secret"));
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL is not valid.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(urls, query, &ServerOptions::default())
    }

    pub(crate) fn at(
        urls: Vec<Url>,
        query: Vec<(String, String)>,
        defaults: &ServerOptions,
    ) -> Result<Self, Error> {
        let (mut options, mut tls, mut rest) = (RedlockOptions::new(), None, Vec::new());
        for (name, value) in query {
            match name.as_str() {
                "max_ttl" => options.max_ttl = duration(&name, &value)?,
                "clock_skew" => options.clock_skew = duration(&name, &value)?,
                "tls" => tls = Some(value),
                "durable" => options.durable = yes_or_no(&name, &value)?,
                _ => rest.push((name, value)),
            }
        }
        let scheme = if uses_tls("redlock", tls.as_deref())? { "rediss" } else { "redis" };
        let mut hosts = HashSet::new();
        let distinct = urls.iter().all(|url| {
            hosts.insert((url.host_str().map(str::to_owned), url.port().unwrap_or(REDIS_PORT)))
        });
        if !distinct {
            let sentence =
                "the URL names a server twice, which would give it two votes: leave one out";
            return Err(Error::InvalidOptions(sentence.into()));
        }
        let forgets = options.forgets();
        let members = Members::new(urls.len());
        let node = |(nth, mut url): (usize, Url)| -> Result<AnyStore, Error> {
            if url.set_scheme(scheme).is_err() {
                return Err(Error::InvalidOptions("this URL names no host".into()));
            }
            let member = members.nth(nth);
            let node = RedisStore::one_of_many(url, &rest, defaults.clone(), forgets, member)?;
            Ok(AnyStore::new(node))
        };
        let nodes: Result<Vec<_>, _> = urls.into_iter().enumerate().map(node).collect();
        Self::of_members(nodes?, members, &options)
    }

    /// Makes a store from nodes that know that they are.
    pub(super) fn of_members(
        nodes: Vec<AnyStore>,
        members: Arc<Members>,
        options: &RedlockOptions,
    ) -> Result<Self, Error> {
        let mut store = Self::new(nodes)?;
        store.members = Some(members);
        if !options.durable {
            store.longest_ttl = store.longest_ttl.min(options.max_ttl);
        }
        Ok(store)
    }
}

const REDIS_PORT: u16 = 6379;

fn yes_or_no(name: &str, value: &str) -> Result<bool, Error> {
    value.parse().map_err(|_| {
        Error::InvalidOptions(format!("`{name}={value}` in the URL is neither `true` nor `false`"))
    })
}
