//! The options of one acquisition, and the checks of their values.

mod choices;
mod lead;
mod once;
mod resolved;

use std::ops::RangeInclusive;
use std::panic::Location;
use std::time::Duration;

use crate::Error;
use crate::lock::century::at_most_a_century;
use crate::lock::site::Site;
pub use choices::{Mode, OnLost, Release};
pub(crate) use once::{LONGEST_PERIOD, check_period};
pub(crate) use resolved::ResolvedOptions;

/// Bounds of a lease: one shorter than 10 ms cannot be renewed over a network, and no caller waits
/// 30 days for a crashed holder.
const TTL: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(30 * 24 * 60 * 60);

/// The options of one acquisition. The manager provides what is not set.
///
/// Invalid options are rejected at their use, with [`Error::InvalidOptions`] and an explanation. A
/// nested call that enters again uses the existing lease. Of its options only `wait`, `retry`,
/// `retry_delay`, `on_lost`, `reentrant`, `mode` and `permits` count, and the last two only to
/// reject a call that the lease could never serve.
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
    progress_within: Option<Duration>,
    hold_at_least: Option<Duration>,
    /// The default depends on whether the body can be cancelled.
    on_lost: Option<OnLost>,
    reentrant: bool,
    mode: Option<Mode>,
    permits: Option<u32>,
    release: Release,
    function: Option<&'static str>,
    site: Option<Site>,
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
            progress_within: None,
            hold_at_least: None,
            on_lost: None,
            reentrant: true,
            mode: None,
            permits: None,
            release: Release::Await,
            function: None,
            site: None,
        }
    }

    /// The length of the lease: how long a crashed holder blocks others. 10 ms to 30 days.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Retries after the first attempt: `retry(10)` makes at most eleven attempts.
    ///
    /// Every store of this crate keeps a wait queue: the call waits in it for as long as the
    /// attempts would take, and is granted the lock in FIFO order. It also retries now and then, in
    /// case a notification was lost.
    ///
    /// `retry` × [`retry_delay`](Self::retry_delay) may be shorter than the TTL, but such a call
    /// gives up before the lease of a crashed holder ends.
    pub const fn retry(mut self, retries: u32) -> Self {
        self.retry = Some(retries);
        self
    }

    /// The longest pause between two attempts. Each pause is random, between half of it and all of
    /// it. A queued call is handed the lock as soon as it is free, whatever the pause.
    /// More than a century counts as a century.
    pub const fn retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = Some(at_most_a_century(delay));
        self
    }

    /// The longest time to wait for the lock. With [`retry`](Self::retry) too, the bound that is
    /// reached first counts. Zero makes one attempt. A store that does not answer gets at least a
    /// quarter of a second. More than a century counts as a century.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(at_most_a_century(wait));
        self
    }

    /// Whether the watchdog renews the lease while it is held; it does by default. Without renewals
    /// the end of the lease is the deadline of the work.
    pub const fn renew(mut self, renew: bool) -> Self {
        self.renew = renew;
        self
    }

    /// The longest time to hold the lock, renewals included. Then the lock is lost. More than a century
    /// counts as a century.
    pub const fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(at_most_a_century(max_hold));
        self
    }

    /// The longest silence of the body: one that does not call
    /// [`report_progress`](crate::Lease::report_progress) for this long loses the lock. At least the TTL.
    ///
    /// A body that hangs would otherwise hold the lock without end, because the watchdog renews it. The lease
    /// ends in the store at the end of the silence, also if the body blocks its thread. For exclusive locks;
    /// the lock is then not handed off inside the process.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lockattr::LockOptions;
    ///
    /// let options = LockOptions::new().progress_within(Duration::from_secs(30));
    /// # drop(options);
    /// ```
    pub const fn progress_within(mut self, within: Duration) -> Self {
        self.progress_within = Some(at_most_a_century(within));
        self
    }

    /// The shortest time that the lock stays held: after a shorter body, the rest of this time.
    ///
    /// For work that must not be repeated soon, however it ended. For a job that runs once in a period, use
    /// [`with_lock_once_per`](crate::LockManager::with_lock_once_per). The time counts from the first line of the body, or from
    /// when [`acquire`](crate::LockManager::acquire) returns; a call that is dropped earlier keeps
    /// nothing held. It must not be longer than [`max_hold`](Self::max_hold), than 366 days, or
    /// than the TTL without [`renew`](Self::renew).
    ///
    /// ```
    /// use std::time::Duration;
    /// use lockattr::LockOptions;
    ///
    /// // At most one reminder a minute, also after a failure.
    /// let remind = LockOptions::new()
    ///     .wait(Duration::ZERO)
    ///     .hold_at_least(Duration::from_secs(60));
    /// # drop(remind);
    /// ```
    pub const fn hold_at_least(mut self, hold_at_least: Duration) -> Self {
        self.hold_at_least = Some(hold_at_least);
        self
    }

    /// What happens to the body of [`with_lock`](crate::LockManager::with_lock) or of an annotated
    /// function when the lease is lost. A guard that was acquired by hand signals through
    /// [`lost`](crate::Lease::lost) instead. A body on the calling thread cannot be cancelled: its
    /// default is [`Error`](OnLost::Error), and [`Cancel`](OnLost::Cancel) is rejected.
    pub const fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = Some(on_lost);
        self
    }

    /// Whether the holder's own nested calls enter again; they do by default. With `false` they
    /// fail with [`Error::Reentered`] at once.
    pub const fn reentrant(mut self, reentrant: bool) -> Self {
        self.reentrant = reentrant;
        self
    }

    /// Makes the key a read/write lock: many [`Shared`](Mode::Shared) holders, or one
    /// [`Exclusive`](Mode::Exclusive) holder, which is the default. Not together with
    /// [`permits`](Self::permits).
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Makes the key a semaphore with this many permits, at least one. Not together with
    /// [`mode`](Self::mode).
    ///
    /// ```
    /// use lockattr::LockOptions;
    ///
    /// // The partner allows three connections, whatever the size of the fleet.
    /// let partner = LockOptions::new().permits(3);
    /// # drop(partner);
    /// ```
    pub const fn permits(mut self, permits: u32) -> Self {
        self.permits = Some(permits);
        self
    }

    /// Whether `with_lock` or the annotated function waits for the answer to its release.
    pub const fn release(mut self, release: Release) -> Self {
        self.release = release;
        self
    }

    /// Names the calling function, for [`Holder`](crate::Holder). The attribute sets it.
    pub const fn function(mut self, function: &'static str) -> Self {
        self.function = Some(function);
        self
    }

    /// The common name of all locks of this kind, for spans, metrics and the [lock-order
    /// check](crate::LockManagerBuilder::check_lock_order). The attribute sets it to its template.
    ///
    /// ```
    /// use lockattr::LockOptions;
    ///
    /// # let id = 42;
    /// let key = format!("product:{id}");
    /// let options = LockOptions::new().template("product:<id>");
    /// # drop((key, options));
    /// ```
    #[track_caller]
    pub const fn template(mut self, template: &'static str) -> Self {
        self.site = Some(Site { template, location: Location::caller() });
        self
    }
}

/// Rejects a TTL that is out of bounds, or beyond the `longest` of this store.
pub(crate) fn check_ttl(ttl: Duration, longest: Duration) -> Result<(), Error> {
    if !TTL.contains(&ttl) {
        return Err(invalid(format!("`ttl` is {ttl:?}: it must be 10 ms to 30 days")));
    }
    check_longest("ttl", ttl, longest)
}

fn check_longest(option: &str, time: Duration, longest: Duration) -> Result<(), Error> {
    if time > longest {
        return Err(invalid(format!(
            "`{option}` is {time:?}, and this store allows leases of {longest:?} at most: set its \
             `max_ttl` (the same in every process), or its `session_timeout` to twice as much, if \
             it has one"
        )));
    }
    Ok(())
}

pub(crate) fn check_retry_delay(delay: Duration) -> Result<(), Error> {
    if delay.is_zero() {
        return Err(invalid(
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
        return Err(invalid(
            "`wait` is zero, so `retry` would never retry: leave one of them out".into(),
        ));
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::InvalidOptions(message)
}
