//! Sets a manager up: a URL or a store, and defaults.

use crate::store::AnyStore;
use std::path::PathBuf;
use std::time::Duration;

use super::LockManager;
use crate::Error;
use crate::lock::settings::Settings;
use crate::observe::Recorder;
use crate::store::url;

/// Sets a [`LockManager`] up step by step.
///
/// What the URL's query says wins over what the program says, so that the caller that runs a service can
/// change it without a new build. The query knows these settings by the same names: `prefix`,
/// `service`, `ttl`, `wait`, `retry`, `retry_delay`, `shutdown_timeout`, `linger`, `max_handoffs`,
/// `max_handoff_time`, `check_lock_order`, `detect_deadlocks`, and where the store has a server `connections`, `connect_timeout`,
/// `response_timeout`, `heartbeat` and `replicas`, and where it is reached by TLS `ca`, `client_cert` and
/// `client_key`.
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
    recorder: Recorder,
}

impl LockManagerBuilder {
    /// The store's URL; see [`LockManager`] for those there are.
    pub fn url(mut self, url: impl AsRef<str>) -> Self {
        self.url = Some(SecretUrl(url.as_ref().into()));
        self
    }

    /// A store made by hand, in place of a URL.
    pub fn store(mut self, store: impl Into<AnyStore>) -> Self {
        self.store = Some(store.into());
        self
    }

    /// What stands before every key in the store, `lock:` by default; may be empty.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// The name under which [`Holder`](crate::Holder) shows this service; the program's by
    /// default.
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.settings.service = Some(service.into());
        self
    }

    /// Length of a lease where the options name none: 10 s by default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long to wait for a lock where the options name neither `retry` nor `wait`: 10 s by
    /// default.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = wait;
        self
    }

    /// How often to retry where the options name neither `retry` nor `wait`: as often as the wait
    /// allows by default.
    pub fn retry(mut self, retries: u32) -> Self {
        self.settings.retry = Some(retries);
        self
    }

    /// Longest pause between two attempts where the options name none: 100 ms by default.
    pub fn retry_delay(mut self, delay: Duration) -> Self {
        self.settings.retry_delay = delay;
        self
    }

    /// How long [`shutdown`](LockManager::shutdown) waits for bodies to stop: 10 s by default.
    pub fn shutdown_timeout(mut self, limit: Duration) -> Self {
        self.settings.shutdown_timeout = limit;
        self
    }

    /// How long a lock is kept in this process after its last holder, so that the next call here
    /// needs no round trip: not at all by default. It is given up at once when another process
    /// wants it.
    ///
    /// For keys that one process locks again and again. Until the time is over, the lock is seen as
    /// held, by [`holder`](LockManager::holder) too, and a caller that asks once from elsewhere is refused.
    pub fn linger(mut self, time: Duration) -> Self {
        self.settings.linger = time;
        self
    }

    /// How often a lock goes from one caller in this process to the next while another process
    /// waits for it: 32 times by default, 0 to let the store decide each time. While no other
    /// process waits, only permits are limited: after so many hand-offs, one permit goes back to
    /// the store.
    pub fn max_handoffs(mut self, count: u32) -> Self {
        self.settings.max_handoffs = count;
        self
    }

    /// For how long a lock goes from one caller in this process to the next while another process
    /// waits for it: 20 ms by default. Permits have this limit also while no other process waits. A
    /// body that runs longer is not interrupted.
    pub fn max_handoff_time(mut self, time: Duration) -> Self {
        self.settings.max_handoff_time = time;
        self
    }

    /// Enables lock-order checking: in debug builds by
    /// default.
    ///
    /// Where `order:<id>` is taken inside `product:<id>` here and the other way round there, two
    /// calls wait for each other one day. That is a warning event with all places in the code, once,
    /// on the first day; and one of [`LockManager::inversions`]. It is about what
    /// [waits](crate::LockOptions::wait): a call that asks once cannot wait in a cycle. As
    /// [lockdep](https://docs.kernel.org/locking/lockdep-design.html) does in Linux.
    pub fn check_lock_order(mut self, look: bool) -> Self {
        self.settings.check_lock_order = look;
        self
    }

    /// Whether a call that waits inside of a hold looks for a deadlock of waiting calls, whatever
    /// processes they are in: not by default.
    ///
    /// It then tells the others in the store what it waits for, and follows what they wait for. One
    /// of the circle gets [`Error::Deadlock`] within a second, which names the others, where all of
    /// them would wait until their wait budget ends. What waits for no caller or is not inside of a hold,
    /// costs nothing; what waits inside of one for longer than a tenth of a second costs a few
    /// commands. All managers of the fleet have to be set to it. Permits are no part of it: a waiter
    /// for one of several is not stuck while another may give one back.
    pub fn detect_deadlocks(mut self, look: bool) -> Self {
        self.settings.detect_deadlocks = look;
        self
    }

    /// Over how many connections the keys are spread, where the store has a server: 1 to 64. By default 1 to
    /// a Redis server (2 with `replicas`), and 2 to a database.
    pub fn connections(mut self, connections: usize) -> Self {
        self.settings.server.connect_over(connections);
        self
    }

    /// How long a connection to the server may take: 1 s by default.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.settings.server.connect_timeout = limit;
        self
    }

    /// How long an answer of the server may take: 1 s by default.
    pub fn response_timeout(mut self, limit: Duration) -> Self {
        self.settings.server.response_timeout = limit;
        self
    }

    /// After how long without an answer the server is asked whether it is still there, and the
    /// connection replaced if it is not: 5 s by default.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.settings.server.heartbeat = interval;
        self
    }

    /// How many replicas of the server must have a lease before it counts: none by default. An
    /// acquisition or a renewal that fewer have in half of the `response_timeout` is an
    /// [`Error::Store`], and is undone or tried again.
    ///
    /// What this protects from is described at [`RedisStore`](crate::store::RedisStore#replicas).
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.settings.server.replicas = replicas;
        self
    }

    /// A file in PEM with the authorities that are trusted to know the server, where the URL asks
    /// for TLS: those of the system by default, and none of them beside these.
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
    /// This file and the other two are read when the manager is built. In a URL's query, what is
    /// not a letter or a digit in their paths is best percent-encoded: `+` must be `%2B`, and `@`
    /// must be `%40`.
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.server.tls.ca = Some(file.into());
        self
    }

    /// A file in PEM with the certificate by which the server knows this client, and those between
    /// it and the authority, if there are any: none by default. Goes with [`client_key`](Self::client_key).
    pub fn client_cert(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.server.tls.cert = Some(file.into());
        self
    }

    /// A file in PEM with the private key to [`client_cert`](Self::client_cert), without a passphrase.
    pub fn client_key(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.server.tls.key = Some(file.into());
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

    /// The observer of what is locked.
    #[cfg(feature = "testing")]
    pub(crate) fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = recorder;
        self
    }

    /// Makes the manager without contacting the store: a program can start while that is away.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if a setting or the URL makes no sense, a file that they name
    /// cannot be used, or there is neither URL nor store.
    pub fn build(mut self) -> Result<LockManager, Error> {
        let store = match (self.store, self.url) {
            (Some(store), None) => store,
            (None, Some(url)) => super::open::open(&url.0, &mut self.settings)?,
            (Some(_), Some(_)) => {
                let sentence = "a manager has one store: give it either `url` or `store`";
                return Err(Error::InvalidOptions(sentence.into()));
            }
            (None, None) => {
                let sentence =
                    "a manager needs a store: give it a `url`, like `redis://127.0.0.1/`";
                return Err(Error::InvalidOptions(sentence.into()));
            }
        };
        self.settings.longest_ttl = store.longest_ttl();
        self.settings.check()?;
        Ok(LockManager::new(store, self.settings, self.recorder))
    }

    /// Makes the manager and checks that the store answers.
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
        let answer = manager.shared.core.store().ping().await;
        answer.map_err(|error| error.about(""))?;
        Ok(manager)
    }
}

/// A URL that may carry a password, and does not show it.
#[derive(Clone)]
struct SecretUrl(String);

impl std::fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&url::redacted(&self.0))
    }
}
