//! Configures a manager: a URL or a store, and defaults.

use std::path::PathBuf;
use std::time::Duration;

use super::LockManager;
use crate::Error;
use crate::lock::century::at_most_a_century;
use crate::lock::settings::Settings;
use crate::observe::Recorder;
use crate::store::{AnyStore, Credentials, ServerOptions, url};

/// Configures a [`LockManager`] step by step.
///
/// The URL's query overrides the program's settings, so that an operator can change them without a
/// new build. The query uses the same names: `prefix`, `service`, `ttl`, `wait`, `retry`,
/// `retry_delay`, `shutdown_timeout`, `linger`, `max_handoffs`, `max_handoff_time`,
/// `check_lock_order`, `detect_deadlocks`; for a store with a server also `connections`,
/// `connect_timeout`, `response_timeout`, `heartbeat`, `replicas` and `schema`; and for TLS `ca`,
/// `client_cert` and `client_key`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use std::time::Duration;
/// use lockattr::LockManager;
///
/// let manager = LockManager::builder()
///     .url("memory://?wait=3s")
///     .prefix("shop:lock:")
///     .service("orders")
///     .ttl(Duration::from_secs(5))
///     .connect()
///     .await?;
/// # let _ = manager;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct LockManagerBuilder {
    url: Option<SecretUrl>,
    store: Option<AnyStore>,
    settings: Settings,
    /// A setting of the store's server that the program has made here.
    server_setting: Option<&'static str>,
    recorder: Recorder,
}

impl LockManagerBuilder {
    /// The store's URL; [`LockManager`] lists the supported ones.
    pub fn url(mut self, url: impl AsRef<str>) -> Self {
        self.url = Some(SecretUrl(url.as_ref().into()));
        self
    }

    /// A store that the program has made, instead of a URL: from its own client or pool, several
    /// servers, or a store of its own kind.
    ///
    /// How such a store talks to its server is set when it is made, by
    /// [`ServerOptions`](crate::store::ServerOptions).
    pub fn store(mut self, store: impl Into<AnyStore>) -> Self {
        self.store = Some(store.into());
        self
    }

    /// The prefix of every key in the store, `lock:` by default; may be empty.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// The service name shown in [`Holder`](crate::Holder); by default the program's name.
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.settings.service = Some(service.into());
        self
    }

    /// The length of a lease if the options name none: 10 s by default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long to wait for a lock if the options set neither `retry` nor `wait`: 10 s by default.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = at_most_a_century(wait);
        self
    }

    /// How often to retry if the options set neither `retry` nor `wait`: by default as often as the
    /// wait budget allows.
    pub fn retry(mut self, retries: u32) -> Self {
        self.settings.retry = Some(retries);
        self
    }

    /// The longest pause between two attempts if the options set none: 100 ms by default.
    pub fn retry_delay(mut self, delay: Duration) -> Self {
        self.settings.retry_delay = at_most_a_century(delay);
        self
    }

    /// How long [`shutdown`](LockManager::shutdown) waits for bodies to stop: 10 s by default.
    pub fn shutdown_timeout(mut self, limit: Duration) -> Self {
        self.settings.shutdown_timeout = at_most_a_century(limit);
        self
    }

    /// How long a lock stays cached in this process after its last holder, so that the next call
    /// here needs no round trip: not at all by default. It is released at once when another process
    /// wants it.
    ///
    /// For keys that one process locks repeatedly. While it is cached, the lock counts as held,
    /// also for [`holder`](LockManager::holder), and a caller elsewhere that makes only one attempt is
    /// refused.
    pub fn linger(mut self, time: Duration) -> Self {
        self.settings.linger = at_most_a_century(time);
        self
    }

    /// How many times a lock is handed from one caller in this process to the next while another
    /// process waits for it: 32 by default, 0 to let the store decide each time. While no other
    /// process waits, only permits are limited: after this many hand-offs, one permit goes back to
    /// the store.
    pub fn max_handoffs(mut self, count: u32) -> Self {
        self.settings.max_handoffs = count;
        self
    }

    /// How long a lock is handed from one caller in this process to the next while another process
    /// waits for it: 20 ms by default. Permits have this limit even while no other process waits. A
    /// body that runs longer is not interrupted.
    pub fn max_handoff_time(mut self, time: Duration) -> Self {
        self.settings.max_handoff_time = at_most_a_century(time);
        self
    }

    /// Enables lock-order checking: in debug builds by default.
    ///
    /// If one call acquires `order:<id>` inside `product:<id>` and another acquires them in the
    /// opposite order, the two can deadlock. The check reports this the first time both orders are
    /// seen, even if no deadlock happens: as one warning event with all code locations, and as one
    /// of [`LockManager::inversions`]. It covers only calls that [wait](crate::LockOptions::wait):
    /// a call that makes one attempt cannot take part in a deadlock.
    /// [lockdep](https://docs.kernel.org/locking/lockdep-design.html) does the same in Linux.
    pub fn check_lock_order(mut self, enabled: bool) -> Self {
        self.settings.check_lock_order = enabled;
        self
    }

    /// Enables deadlock detection for calls that wait inside a hold, across processes: off by
    /// default.
    ///
    /// A waiting call then publishes in the store what it waits for, and follows what the others
    /// wait for. One call of a deadlock gets [`Error::Deadlock`] within a second, which names the
    /// others; without detection, all of them would wait until their wait budgets end. A call that
    /// does not wait, or is not inside a hold, costs nothing; a call that waits inside a hold for more
    /// than 100 ms costs a few commands. Enable it in all managers of the fleet. A call
    /// may lock through several of them, if they use one store. Permits are
    /// excluded: a waiter for one of several is not stuck while another may be released.
    pub fn detect_deadlocks(mut self, enabled: bool) -> Self {
        self.settings.detect_deadlocks = enabled;
        self
    }

    /// The number of connections (1 to 64) over which the keys are spread, for a store with a server.
    /// By default 1 for a Redis server (2 with `replicas`), and 2 for a database.
    pub fn connections(self, connections: usize) -> Self {
        self.server("connections", |server| server.connections(connections))
    }

    /// The longest time to connect to the server: 1 s by default.
    pub fn connect_timeout(self, limit: Duration) -> Self {
        self.server("connect_timeout", |server| server.connect_timeout(limit))
    }

    /// The longest time to wait for an answer of the server: 1 s by default.
    pub fn response_timeout(self, limit: Duration) -> Self {
        self.server("response_timeout", |server| server.response_timeout(limit))
    }

    /// The time without an answer after which the connection is checked, and replaced if it is
    /// dead: 7 s by default.
    pub fn heartbeat(self, interval: Duration) -> Self {
        self.server("heartbeat", |server| server.heartbeat(interval))
    }

    /// How many replicas of the server must have a lease before it counts: none by default. If
    /// fewer confirm an acquisition or a renewal within half of the `response_timeout`, it is an
    /// [`Error::Store`], and is undone or tried again.
    ///
    /// [`RedisStore`](crate::store::RedisStore#replicas) describes what this protects from.
    pub fn replicas(self, replicas: usize) -> Self {
        self.server("replicas", |server| server.replicas(replicas))
    }

    /// The schema of a PostgreSQL database that has the store's tables: `public` by default.
    ///
    /// Two schemas are two sets of locks, so all programs that share locks have to name the same one.
    pub fn schema(self, name: impl Into<String>) -> Self {
        self.server("schema", |server| server.schema(name))
    }

    /// A function that returns the credentials which are valid now, for passwords that rotate.
    ///
    /// [`ServerOptions::credentials`](crate::store::ServerOptions::credentials) says when it is asked.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::LockManager;
    /// use lockattr::store::Credentials;
    ///
    /// let manager = LockManager::builder()
    ///     .url("redis://db.example/")
    ///     .credentials(|| async {
    ///         let password = std::fs::read_to_string("/run/secrets/locks")?;
    ///         Ok::<_, std::io::Error>(Credentials::new("locks", password.trim_end()))
    ///     })
    ///     .build()?;
    /// # let _ = manager;
    /// # Ok(())
    /// # }
    /// ```
    pub fn credentials<F, A, E>(self, provide: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.server("credentials", |server| server.credentials(provide))
    }

    /// A PEM file with the authorities that are trusted to identify the server, if the URL asks for
    /// TLS: by default those of the system. The file replaces them.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::LockManager;
    ///
    /// let manager = LockManager::builder()
    ///     .url("rediss://db.example/")
    ///     .ca("/etc/locks/ca.pem")
    ///     .client_cert("/etc/locks/client.pem")
    ///     .client_key("/etc/locks/client.key")
    ///     .build()?;
    /// # let _ = manager;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// This file and the other two are read when the manager is built, and again for each new connection: replace
    /// them at any time, each by a rename. In a URL's query,
    /// better percent-encode every character of their paths that is not a letter or a digit: `+`
    /// must be `%2B`, and `@` must be `%40`.
    pub fn ca(self, file: impl Into<PathBuf>) -> Self {
        self.server("ca", |mut server| {
            server.tls.ca = Some(file.into());
            server
        })
    }

    /// A PEM file with the certificate that identifies this client to the server, and any
    /// intermediate certificates: none by default. Requires [`client_key`](Self::client_key).
    pub fn client_cert(self, file: impl Into<PathBuf>) -> Self {
        self.server("client_cert", |mut server| {
            server.tls.cert = Some(file.into());
            server
        })
    }

    /// A PEM file with the private key of [`client_cert`](Self::client_cert), without a passphrase.
    pub fn client_key(self, file: impl Into<PathBuf>) -> Self {
        self.server("client_key", |mut server| {
            server.tls.key = Some(file.into());
            server
        })
    }

    /// Sets how the store talks to its server.
    fn server(
        mut self,
        name: &'static str,
        set: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Self {
        self.settings.server = set(std::mem::take(&mut self.settings.server));
        self.server_setting.get_or_insert(name);
        self
    }

    /// The old name of [`shutdown_timeout`](Self::shutdown_timeout).
    #[deprecated(note = "renamed to `shutdown_timeout`")]
    #[doc(hidden)]
    pub fn shutdown_limit(self, limit: Duration) -> Self {
        self.shutdown_timeout(limit)
    }

    /// The old name of [`max_handoffs`](Self::max_handoffs).
    #[deprecated(note = "renamed to `max_handoffs`")]
    #[doc(hidden)]
    pub fn hand_overs(self, count: u32) -> Self {
        self.max_handoffs(count)
    }

    /// The old name of [`max_handoff_time`](Self::max_handoff_time).
    #[deprecated(note = "renamed to `max_handoff_time`")]
    #[doc(hidden)]
    pub fn hand_over_time(self, time: Duration) -> Self {
        self.max_handoff_time(time)
    }

    /// The old name of [`check_lock_order`](Self::check_lock_order).
    #[deprecated(note = "renamed to `check_lock_order`")]
    #[doc(hidden)]
    pub fn lock_order(self, check: bool) -> Self {
        self.check_lock_order(check)
    }

    /// The old name of [`detect_deadlocks`](Self::detect_deadlocks).
    #[deprecated(note = "renamed to `detect_deadlocks`")]
    #[doc(hidden)]
    pub fn deadlocks(self, detect: bool) -> Self {
        self.detect_deadlocks(detect)
    }

    /// The old name of [`client_cert`](Self::client_cert).
    #[deprecated(note = "renamed to `client_cert`")]
    #[doc(hidden)]
    pub fn cert(self, file: impl Into<PathBuf>) -> Self {
        self.client_cert(file)
    }

    /// The old name of [`client_key`](Self::client_key).
    #[deprecated(note = "renamed to `client_key`")]
    #[doc(hidden)]
    pub fn key(self, file: impl Into<PathBuf>) -> Self {
        self.client_key(file)
    }

    /// The observer of all locks of this manager.
    #[cfg(feature = "testing")]
    pub(crate) fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = recorder;
        self
    }

    /// Builds the manager without contacting the store: a program can start while the store is
    /// down.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if a setting or the URL is invalid, a file that they name cannot
    /// be used, or neither a URL nor a store is set.
    pub fn build(mut self) -> Result<LockManager, Error> {
        let store = match (self.store, self.url) {
            (Some(store), None) => match self.server_setting {
                None => store,
                Some(name) => {
                    let message = format!(
                        "`{name}` is a setting of a store that the manager opens by its URL: give it to \
                         the store that you made, in its `ServerOptions`"
                    );
                    return Err(Error::InvalidOptions(message));
                }
            },
            (None, Some(url)) => super::open::open(&url.0, &mut self.settings)?,
            (Some(_), Some(_)) => {
                let message = "a manager has one store: give it either `url` or `store`";
                return Err(Error::InvalidOptions(message.into()));
            }
            (None, None) => {
                let message = "a manager needs a store: give it a `url`, like `redis://127.0.0.1/`";
                return Err(Error::InvalidOptions(message.into()));
            }
        };
        self.settings.longest_ttl = store.longest_ttl();
        self.settings.check()?;
        Ok(LockManager::new(store, self.settings, self.recorder))
    }

    /// Builds the manager and checks that the store answers.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build), and [`Error::Store`] if the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// Can be dropped at any time.
    pub async fn connect(self) -> Result<LockManager, Error> {
        let manager = self.build()?;
        manager.shared.core.watchdog.check_here()?;
        let outcome = manager.shared.core.store().ping().await;
        outcome.map_err(|error| error.about(""))?;
        Ok(manager)
    }
}

/// A URL that may contain a password; its debug output hides it.
#[derive(Clone)]
struct SecretUrl(String);

impl std::fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&url::redacted(&self.0))
    }
}
