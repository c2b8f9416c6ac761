//! A manager's settings: defaults, then the builder, then the URL's query.

use std::time::Duration;

use crate::Error;
use crate::lock::century::at_most_a_century;
use crate::lock::options::{check_retry_and_wait, check_retry_delay, check_ttl};
use crate::lock::server_options::ServerOptions;

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
    pub(crate) server: ServerOptions,
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
            server: ServerOptions::default(),
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

/// Parses `10s`, `500ms`, `1m30s`.
pub(crate) fn duration(name: &str, value: &str) -> Result<Duration, Error> {
    humantime::parse_duration(value).map(at_most_a_century).map_err(|_| {
        Error::InvalidOptions(format!(
            "`{name}={value}` in the URL is not a duration: write it like `10s` or `500ms`"
        ))
    })
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
}
