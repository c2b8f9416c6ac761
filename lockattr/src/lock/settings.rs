//! A manager's settings: defaults, then the builder, then the URL's query.

use std::path::PathBuf;
use std::time::Duration;

use crate::Error;
use crate::lock::options::{check_retry_and_wait, check_retry_delay, check_ttl};

/// A manager's defaults for every acquisition, and its own name.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) prefix: String,
    pub(crate) service: Option<String>,
    pub(crate) ttl: Duration,
    pub(crate) wait: Duration,
    pub(crate) retry: Option<u32>,
    pub(crate) retry_delay: Duration,
    pub(crate) shutdown_timeout: Duration,
    /// How long a lock stays cached in this process after its last holder.
    pub(crate) linger: Duration,
    /// How often, and for how long, this process hands a lock to its own callers while another process waits
    /// for it. Permits always have these limits.
    pub(crate) max_handoffs: u32,
    pub(crate) max_handoff_time: Duration,
    pub(crate) server: ServerSettings,
    pub(crate) longest_ttl: Duration,
    pub(crate) check_lock_order: bool,
    /// Enables deadlock detection for calls that wait while their call chain holds a lock.
    pub(crate) detect_deadlocks: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: "lock:".into(),
            service: None,
            ttl: Duration::from_secs(10),
            wait: Duration::from_secs(10),
            retry: None,
            retry_delay: Duration::from_millis(100),
            shutdown_timeout: Duration::from_secs(10),
            linger: Duration::ZERO,
            max_handoffs: 32,
            max_handoff_time: Duration::from_millis(20),
            server: ServerSettings::default(),
            longest_ttl: Duration::MAX,
            check_lock_order: cfg!(debug_assertions),
            detect_deadlocks: false,
        }
    }
}

/// The names that a URL's query may set, for the message about an unknown one.
pub(crate) const NAMES: &str = "`prefix`, `service`, `ttl`, `wait`, `retry`, `retry_delay`, `shutdown_timeout`, `linger`, \
     `max_handoffs`, `max_handoff_time`, `check_lock_order`, `detect_deadlocks`";

impl Settings {
    /// Applies one setting of a URL's query; `false` if it is not a manager's.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the value cannot be read.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool, Error> {
        // The second name of a pair is the one from before 0.1.
        match name {
            "prefix" => self.prefix = value.into(),
            "service" => self.service = Some(value.into()),
            "ttl" => self.ttl = duration(name, value)?,
            "wait" => self.wait = duration(name, value)?,
            "retry" => self.retry = Some(number(name, value)?),
            "retry_delay" => self.retry_delay = duration(name, value)?,
            "shutdown_timeout" | "shutdown_limit" => self.shutdown_timeout = duration(name, value)?,
            "linger" => self.linger = duration(name, value)?,
            "max_handoffs" | "hand_overs" => self.max_handoffs = number(name, value)?,
            "max_handoff_time" | "hand_over_time" => self.max_handoff_time = duration(name, value)?,
            "check_lock_order" | "lock_order" => self.check_lock_order = switch(name, value)?,
            "detect_deadlocks" | "deadlocks" => self.detect_deadlocks = switch(name, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_ttl(self.ttl, self.longest_ttl)?;
        check_retry_delay(self.retry_delay)?;
        check_retry_and_wait(self.retry, Some(self.wait))?;
        self.server.check()
    }
}

/// How a store talks to its server, if it has one.
#[derive(Clone, Debug)]
pub(crate) struct ServerSettings {
    /// `None` for the store's default.
    connections: Option<usize>,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    /// After this long without an answer, the client checks whether the server is alive.
    pub(crate) heartbeat: Duration,
    /// How many replicas must have a lease before it counts.
    pub(crate) replicas: usize,
    pub(crate) tls: TlsFiles,
}

/// The PEM files for connections with TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsFiles {
    /// The trusted authorities, in place of the system's.
    pub(crate) ca: Option<PathBuf>,
    /// The client's own certificate, and its key.
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            connections: None,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            heartbeat: Duration::from_secs(5),
            replicas: 0,
            tls: TlsFiles::default(),
        }
    }
}

impl ServerSettings {
    pub(crate) fn connect_over(&mut self, connections: usize) {
        self.connections = Some(connections);
    }

    /// The number of connections to a Redis server. The server executes one command at a time, and
    /// one connection carries the commands of all tasks in few writes, where two connections need
    /// twice as many. But `WAIT` blocks its connection.
    #[cfg(feature = "redis")]
    pub(crate) fn multiplexed(&self) -> usize {
        self.connections.unwrap_or(if self.replicas > 0 { 2 } else { 1 })
    }

    /// The number of connections to a database. Each is a process or a thread of the server, which
    /// answers one request at a time.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(crate) fn connections(&self) -> usize {
        self.connections.unwrap_or(2)
    }

    /// As [`Settings::set`].
    #[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool, Error> {
        match name {
            "connections" => self.connections = Some(number(name, value)?),
            "connect_timeout" => self.connect_timeout = duration(name, value)?,
            "response_timeout" => self.response_timeout = duration(name, value)?,
            "heartbeat" => self.heartbeat = duration(name, value)?,
            "replicas" => self.replicas = number(name, value)?,
            "ca" => self.tls.ca = Some(value.into()),
            "client_cert" | "cert" => self.tls.cert = Some(value.into()),
            "client_key" | "key" => self.tls.key = Some(value.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.connections.is_some_and(|connections| !(1..=64).contains(&connections)) {
            return Err(Error::InvalidOptions("`connections` must be 1 to 64".into()));
        }
        let times = [
            ("connect_timeout", self.connect_timeout),
            ("response_timeout", self.response_timeout),
            ("heartbeat", self.heartbeat),
        ];
        if let Some((name, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            return Err(Error::InvalidOptions(format!("`{name}` must not be zero")));
        }
        times.iter().try_for_each(|(name, time)| check_longest(name, *time))?;
        self.tls.check()
    }
}

impl TlsFiles {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let (named, missing) = match (&self.cert, &self.key) {
            (Some(_), None) => ("client_cert", "client_key"),
            (None, Some(_)) => ("client_key", "client_cert"),
            _ => return Ok(()),
        };
        let message = format!("`{named}` needs `{missing}` too: give both files");
        Err(Error::InvalidOptions(message))
    }

    /// The files that are set, by the names of their settings.
    #[cfg(feature = "redis")]
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let all = [("ca", &self.ca), ("client_cert", &self.cert), ("client_key", &self.key)];
        all.into_iter().filter_map(|(name, path)| Some((name, path.as_ref()?)))
    }
}

/// Longer than any real duration, and a sum of a few does not overflow a clock.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

fn check_longest(name: &str, time: Duration) -> Result<(), Error> {
    if time > LONGEST {
        return Err(Error::InvalidOptions(format!("`{name}` is longer than a century")));
    }
    Ok(())
}

/// Parses `10s`, `500ms`, `1m30s`.
pub(crate) fn duration(name: &str, value: &str) -> Result<Duration, Error> {
    let duration = humantime::parse_duration(value).map_err(|_| {
        Error::InvalidOptions(format!(
            "`{name}={value}` in the URL is not a duration: write it like `10s` or `500ms`"
        ))
    })?;
    check_longest(name, duration)?;
    Ok(duration)
}

fn switch(name: &str, value: &str) -> Result<bool, Error> {
    value.parse().map_err(|_| {
        Error::InvalidOptions(format!("`{name}={value}` in the URL must be `true` or `false`"))
    })
}

pub(crate) fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Error> {
    value.parse().map_err(|_| {
        Error::InvalidOptions(format!("`{name}={value}` in the URL is not a whole number in range"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockManager;

    /// Red without: the second name in an arm of `set`.
    #[test]
    fn a_url_may_use_the_names_of_before() {
        let mut settings = Settings::default();
        for (name, value) in [
            ("shutdown_limit", "7s"),
            ("hand_overs", "7"),
            ("hand_over_time", "7s"),
            ("lock_order", "true"),
            ("deadlocks", "true"),
        ] {
            assert!(settings.set(name, value).unwrap(), "{name}");
        }
        let seven = Duration::from_secs(7);
        assert_eq!((settings.shutdown_timeout, settings.max_handoff_time), (seven, seven));
        assert_eq!(settings.max_handoffs, 7);
        assert!(settings.check_lock_order && settings.detect_deadlocks);
    }

    /// Red without: `check_longest`, in `duration` and in `ServerSettings::check`.
    #[test]
    fn a_time_that_no_clock_could_be_set_to_is_refused() {
        let refused = |builder: crate::LockManagerBuilder| {
            let error = builder.build().map(drop).unwrap_err().to_string();
            assert!(error.contains("longer than a century"), "{error}");
        };
        for setting in ["linger", "max_handoff_time", "wait"] {
            let url = format!("memory://?{setting}=500000000000y");
            refused(LockManager::builder().url(url));
        }
        refused(LockManager::builder().url("memory://").heartbeat(Duration::MAX));
        #[cfg(feature = "redis")]
        refused(LockManager::builder().url("redlock://a,b,c?max_ttl=500000000000y"));
    }
}
