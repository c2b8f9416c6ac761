//! The store that the user names, and the part of its URL that may be shown.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lockattr::{Error, LockManager};
use tokio::time::timeout;

use crate::run::Signals;

/// A store's URL, without a password in its debug output.
#[derive(Clone)]
pub(crate) struct StoreUrl(String);

impl StoreUrl {
    pub(crate) fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }

    /// Its scheme and hosts.
    ///
    /// Only for a URL that a manager accepts: those have no `/`, `?`, `#` or `@` within a password.
    pub(crate) fn shown(&self) -> String {
        let (scheme, rest) = self.0.split_once("://").unwrap_or_default();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let hosts = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{hosts}")
    }
}

impl FromStr for StoreUrl {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreUrl(…)")
    }
}

/// A manager whose store has answered.
pub(crate) async fn connect(url: Option<StoreUrl>) -> Result<LockManager, Error> {
    LockManager::connect(named(url)?.0).await
}

/// A manager that has not contacted its store yet.
pub(crate) fn build(url: Option<StoreUrl>) -> Result<LockManager, Error> {
    LockManager::builder().url(named(url)?.0).build()
}

/// The longest delay at the end because of a store that does not answer.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Releases locks that may have been granted without an answer, and leaves the wait queues. A
/// signal ends the wait.
pub(crate) async fn leave(manager: &LockManager, signals: &mut Signals) {
    tokio::select! {
        _ = timeout(SHUTDOWN_TIMEOUT, manager.shutdown()) => {}
        _ = signals.next() => {}
    }
}

fn named(url: Option<StoreUrl>) -> Result<StoreUrl, Error> {
    // An empty variable counts as unset.
    url.filter(|url| !url.0.is_empty()).ok_or_else(|| {
        Error::InvalidOptions(
            "no store is set: set the environment variable `LOCKATTR_URL`, or write `--url`, like \
             `--url redis://127.0.0.1/`"
                .into(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        let url: StoreUrl = url.parse().unwrap();
        assert_eq!(url.shown(), expected);
        assert!(!format!("{url:?}").contains("secret"));
    }

    #[test]
    fn of_a_url_only_scheme_and_hosts_are_shown() {
        check("memory://", "memory://");
        check("redis://:secret@db:6380/3?prefix=a", "redis://db:6380");
        check("redlock://me:secret@a,b,c?ttl=1s", "redlock://a,b,c");
        check("redis+unix:///run/secret.sock?pass=secret", "redis+unix://");
    }
}
