//! What one acquisition asks for, and which combinations make no sense.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::Error;
use crate::retry::Patience;
use crate::settings::Settings;

/// How long a lease may be: shorter than 10 ms no network can renew, longer than 30 days nobody
/// waits for a crashed holder.
const TTL: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(30 * 24 * 60 * 60);

/// What one acquisition asks for; what is not set comes from the manager.
///
/// The options are checked when they are used: those that make no sense are refused with
/// [`Error::InvalidOptions`] and a sentence. A nested call that enters again has the lease that
/// there is; of its options only the patience, `on_lost` and `reentrant` count.
///
/// ```
/// use std::time::Duration;
/// use lockattr::{LockOptions, OnLost};
///
/// let nightly = LockOptions::new()
///     .ttl(Duration::from_secs(30))
///     .wait(Duration::ZERO)
///     .max_hold(Duration::from_secs(3600))
///     .on_lost(OnLost::Error);
/// # let _ = nightly;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LockOptions {
    ttl: Option<Duration>,
    retry: Option<u32>,
    retry_delay: Option<Duration>,
    wait: Option<Duration>,
    renew: bool,
    max_hold: Option<Duration>,
    on_lost: OnLost,
    reentrant: bool,
    release: Release,
    function: Option<&'static str>,
}

/// What happens to the body when its lease is lost.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use std::time::Duration;
/// use lockattr::{Error, LockManager, LockOptions, OnLost};
/// use tokio::time::sleep;
///
/// let manager = LockManager::connect("memory://").await?;
/// let short = LockOptions::new().ttl(Duration::from_secs(1)).renew(false);
/// let body = async |_: &lockattr::Lease| {
///     sleep(Duration::from_secs(2)).await;
///     "done"
/// };
///
/// let cancelled = manager.with_lock("k", short.clone(), body).await;
/// assert!(matches!(cancelled, Err(Error::Lost { .. })));
/// let finished = manager.with_lock("k", short.on_lost(OnLost::Ignore), body).await;
/// assert_eq!(finished?, "done");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// Drop it at its next await point and return [`Error::Lost`].
    #[default]
    Cancel,
    /// Let it finish, then return [`Error::Lost`].
    Error,
    /// Let it finish and return its value, with a warning event.
    Ignore,
}

/// Whether the caller waits for the answer to its release.
///
/// ```
/// use lockattr::{LockOptions, Release};
///
/// // One round trip a call instead of two.
/// let quick = LockOptions::new().release(Release::Background);
/// # drop(quick);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// Return when the store has answered.
    #[default]
    Await,
    /// Return as soon as the release is sent: one round trip less. The manager sees it through,
    /// and later commands for the key keep their order.
    Background,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl LockOptions {
    /// The manager's defaults: renewed while held, reentrant, cancelled when lost.
    pub const fn new() -> Self {
        Self {
            ttl: None,
            retry: None,
            retry_delay: None,
            wait: None,
            renew: true,
            max_hold: None,
            on_lost: OnLost::Cancel,
            reentrant: true,
            release: Release::Await,
            function: None,
        }
    }

    /// Length of the lease: how long a crashed holder keeps others out. 10 ms to 30 days.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Retries after the first attempt: `retry(10)` is at most eleven attempts.
    ///
    /// `retry` × [`retry_delay`](Self::retry_delay) shorter than the TTL is allowed, but such a
    /// patience cannot outlive a crashed holder.
    pub const fn retry(mut self, retries: u32) -> Self {
        self.retry = Some(retries);
        self
    }

    /// Longest pause between two attempts; each pause is a random half to whole of it.
    pub const fn retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = Some(delay);
        self
    }

    /// Longest time to wait for the lock. With [`retry`](Self::retry) too, whichever ends first;
    /// zero asks once. A store that does not answer gets at least a quarter of a second for it.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Whether the watchdog renews the lease while it is held (it does by default). Without, the
    /// lease's end is the deadline of the work.
    pub const fn renew(mut self, renew: bool) -> Self {
        self.renew = renew;
        self
    }

    /// Longest time to hold the lock, however often it is renewed; then it is lost.
    pub const fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// What happens to the body of [`with_lock`](crate::LockManager::with_lock) or of an annotated
    /// function when the lease is lost. A guard taken by hand tells through
    /// [`lost`](crate::Lease::lost) instead.
    pub const fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Whether the holder's own nested calls enter again (they do by default); `false` answers
    /// them with [`Error::Reentered`] at once.
    pub const fn reentrant(mut self, reentrant: bool) -> Self {
        self.reentrant = reentrant;
        self
    }

    /// Whether `with_lock` or the annotated function waits for the answer to its release.
    pub const fn release(mut self, release: Release) -> Self {
        self.release = release;
        self
    }

    /// Names the function that asks, for [`Holder`](crate::Holder); the attribute does it by
    /// itself.
    pub const fn function(mut self, function: &'static str) -> Self {
        self.function = Some(function);
        self
    }

    /// Fills in the manager's defaults and refuses what contradicts itself.
    pub(crate) fn resolve(&self, defaults: &Settings) -> Result<Terms, Error> {
        let ttl = self.ttl.unwrap_or(defaults.ttl);
        check_ttl(ttl)?;
        if let Some(max_hold) = self.max_hold
            && max_hold < ttl
        {
            return Err(refused(format!(
                "`max_hold` ({max_hold:?}) is shorter than `ttl` ({ttl:?}): shorten `ttl` too"
            )));
        }
        check_retry_and_wait(self.retry, self.wait)?;
        let delay = self.retry_delay.unwrap_or(defaults.retry_delay);
        check_retry_delay(delay)?;
        let (retry, wait) = match (self.retry, self.wait) {
            (None, None) => (defaults.retry, Some(defaults.wait)),
            given => given,
        };
        Ok(Terms {
            ttl,
            patience: Patience { retry, wait, delay },
            renew: self.renew,
            max_hold: self.max_hold,
            on_lost: self.on_lost,
            reentrant: self.reentrant,
            release: self.release,
            function: self.function,
        })
    }
}

/// Options with nothing left open.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) ttl: Duration,
    pub(crate) patience: Patience,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) on_lost: OnLost,
    pub(crate) reentrant: bool,
    pub(crate) release: Release,
    pub(crate) function: Option<&'static str>,
}

pub(crate) fn check_ttl(ttl: Duration) -> Result<(), Error> {
    if TTL.contains(&ttl) {
        return Ok(());
    }
    Err(refused(format!("`ttl` is {ttl:?}: it must be 10 ms to 30 days")))
}

pub(crate) fn check_retry_delay(delay: Duration) -> Result<(), Error> {
    if delay.is_zero() {
        return Err(refused(
            "`retry_delay` is zero, which would ask the store without a pause: write 1 ms or more"
                .into(),
        ));
    }
    Ok(())
}

pub(crate) fn check_retry_and_wait(
    retry: Option<u32>,
    wait: Option<Duration>,
) -> Result<(), Error> {
    if retry.is_some() && wait == Some(Duration::ZERO) {
        return Err(refused(
            "`wait` is zero, so `retry` would never retry: leave one of them out".into(),
        ));
    }
    Ok(())
}

fn refused(sentence: String) -> Error {
    Error::InvalidOptions(sentence)
}
