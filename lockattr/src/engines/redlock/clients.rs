//! A quorum of the program's own Redis clients.

use std::collections::HashSet;
use std::time::Duration;

use redis::Client;

use super::RedlockStore;
use super::members::Members;
use crate::Error;
use crate::lock::century::at_most_a_century;
use crate::lock::server_options::ServerOptions;
use crate::store::{AnyStore, RedisStore};

/// The settings of a quorum of Redis servers.
///
/// [`ServerOptions`] convert into it, for a quorum with the default settings.
///
/// ```
/// use std::time::Duration;
/// use lockattr::store::{RedlockOptions, ServerOptions};
///
/// let server = ServerOptions::new().response_timeout(Duration::from_millis(200));
/// let options = RedlockOptions::new().server(server).max_ttl(Duration::from_secs(30));
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RedlockOptions {
    server: ServerOptions,
    pub(super) max_ttl: Duration,
    pub(super) clock_skew: Duration,
    pub(super) durable: bool,
}

impl Default for RedlockOptions {
    fn default() -> Self {
        Self {
            server: ServerOptions::new(),
            max_ttl: RedlockStore::MAX_TTL,
            clock_skew: RedlockStore::CLOCK_SKEW,
            durable: false,
        }
    }
}

impl From<ServerOptions> for RedlockOptions {
    fn from(server: ServerOptions) -> Self {
        Self { server, ..Self::default() }
    }
}

impl RedlockOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How the store talks to each of its servers.
    pub fn server(mut self, options: ServerOptions) -> Self {
        self.server = options;
        self
    }

    /// The longest lease: one minute by default. A restarted server grants nothing for a little
    /// longer than this, as [`MAX_TTL`](RedlockStore::MAX_TTL) describes.
    pub fn max_ttl(mut self, longest: Duration) -> Self {
        self.max_ttl = at_most_a_century(longest);
        self
    }

    /// The greatest difference between the clocks of the locking processes: one second by default.
    pub fn clock_skew(mut self, difference: Duration) -> Self {
        self.clock_skew = at_most_a_century(difference);
        self
    }

    /// States that every server writes each change to disk before it replies, and so forgets
    /// nothing in a restart: `false` by default.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Returns the longest lease that a server may lose by a restart.
    pub(super) fn forgets(&self) -> Option<Duration> {
        // A server's clock drifts by at most 1 %, as for every lease.
        let longest = self.max_ttl.saturating_add(self.max_ttl / 100);
        (!self.durable).then(|| longest.saturating_add(self.clock_skew))
    }

    fn check(&self) -> Result<(), Error> {
        if self.max_ttl.is_zero() {
            return Err(Error::InvalidOptions("`max_ttl` must not be zero".into()));
        }
        Ok(())
    }
}

impl RedlockStore {
    /// Makes a store from clients of the program's, one for each server. Does not contact the
    /// servers.
    ///
    /// [`RedisStore::from_client`] says what of a client counts. Each keeps its own login and TLS; a
    /// provider of [`credentials`](ServerOptions::credentials) in `options` is asked for all of them.
    /// As with a URL, a restarted server grants nothing until what it may have forgotten has
    /// expired, and two clients of one server are refused.
    ///
    /// ```
    /// use lockattr::store::{RedlockStore, ServerOptions, redis};
    ///
    /// let clients = ["redis://r1", "redis://r2", "redis://r3"];
    /// let clients = clients.map(|url| redis::Client::open(url).expect("a valid URL"));
    /// let store = RedlockStore::from_clients(clients, ServerOptions::new())?;
    /// # let _ = store;
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if there are fewer than 3 clients or more than 63, if two of them
    /// have the same address, or if an option is out of range.
    pub fn from_clients(
        clients: impl IntoIterator<Item = Client>,
        options: impl Into<RedlockOptions>,
    ) -> Result<Self, Error> {
        let options = options.into();
        options.check()?;
        let clients: Vec<_> = clients.into_iter().collect();
        let mut addresses = HashSet::new();
        let address = |client: &Client| client.get_connection_info().addr().to_string();
        if !clients.iter().all(|client| addresses.insert(address(client))) {
            let sentence = "two clients have the same address, which would give their server two \
                            votes: leave one out";
            return Err(Error::InvalidOptions(sentence.into()));
        }
        let members = Members::new(clients.len());
        let node = |(nth, client): (usize, &Client)| -> Result<AnyStore, Error> {
            let (server, member) = (options.server.clone(), members.nth(nth));
            RedisStore::client_of_many(client, server, options.forgets(), member).map(AnyStore::new)
        };
        let nodes = clients.iter().enumerate().map(node).collect::<Result<Vec<_>, _>>()?;
        Self::of_members(nodes, members.clone(), &options)
    }
}
