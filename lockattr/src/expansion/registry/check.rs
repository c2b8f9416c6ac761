//! Checks an annotated function against a store, before its first call.

use std::time::Duration;

use super::AnnotatedLock;
use crate::lock::options::LONGEST_PERIOD;
use crate::manager::check::Needs;
use crate::{Error, LockManager, LockOptions, Mode};

impl AnnotatedLock {
    /// Checks that the store of `manager` can do what the attribute asks for: the length of its lease,
    /// `once_per`, `once_for`, `share_result`, `mode`, `permits` and several keys.
    ///
    /// Without it, the first call of the function is refused, which may be at night. Check the functions of the
    /// program when it starts. A check sends no request.
    ///
    /// Options that are expressions are known only when the function is called, so their values are not checked.
    /// A function with a `manager` of its own locks with that one: check it against that one, or skip it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] with the function, its place in the source and the reason.
    ///
    /// ```
    /// # use lockattr::{Error, LockManager, distributed_lock};
    /// #[distributed_lock(key = "job:invoices", once_per = "22h")]
    /// async fn invoices() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let manager = LockManager::connect("memory://").await?;
    /// for lock in lockattr::registry() {
    ///     if lock.option("manager").is_none() {
    ///         lock.check(&manager)?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn check(&self, manager: &LockManager) -> Result<(), Error> {
        manager.check_store(&self.needs()).map_err(|error| match error {
            Error::InvalidOptions(why) => Error::InvalidOptions(format!("{self}: {why}")),
            other => other,
        })
    }

    fn needs(&self) -> Needs<'static> {
        let (once_per, once_for) = (self.option("once_per"), self.option("once_for"));
        let period = match once_per {
            Some(_) => self.time("once_per"),
            None => once_for.map(|_| LONGEST_PERIOD),
        };
        Needs {
            keys: self.keys,
            options: self.known_options(),
            runs_once: once_per.or(once_for).is_some(),
            period,
            #[cfg(feature = "share")]
            shares_result: self.option("share_result") == Some("true"),
        }
    }

    /// The options that a store may refuse, without those that are expressions.
    fn known_options(&self) -> LockOptions {
        let mut options = LockOptions::new();
        if let Some(permits) = self.option("permits") {
            // No store looks at the number.
            options = options.permits(permits.parse().unwrap_or(1));
        } else if self.option("mode") == Some("shared") {
            options = options.mode(Mode::Shared);
        }
        match self.time("ttl") {
            Some(ttl) => options = options.ttl(ttl),
            // The other times are compared with a `ttl` that is not known.
            None if self.option("ttl").is_some() => return options,
            None => {}
        }
        if let Some(time) = self.time("max_hold") {
            options = options.max_hold(time);
        }
        if let Some(time) = self.time("progress_within") {
            options = options.progress_within(time);
        }
        if let Some(time) = self.time("hold_at_least") {
            options = options.hold_at_least(time);
        }
        options
    }

    /// An option that is written as a text such as `"10s"`.
    fn time(&self, name: &str) -> Option<Duration> {
        let text = self.option(name)?.trim_start_matches('r').trim_matches('#');
        humantime::parse_duration(text.strip_prefix('"')?.strip_suffix('"')?).ok()
    }
}
