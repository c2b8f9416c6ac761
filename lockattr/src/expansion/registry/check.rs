//! Checks an annotated function against a store, before its first call.

use super::AnnotatedLock;
use crate::lock::options::LONGEST_PERIOD;
use crate::manager::check::Needs;
use crate::store::Sharing;
use crate::{Error, LockManager};

impl AnnotatedLock {
    /// Checks that the store of `manager` can do what the attribute asks for: `once_per`, `once_for`,
    /// `share_result`, `mode`, `permits` and several keys.
    ///
    /// Without it, the first call of the function is refused, which may be at night. Call it for every
    /// annotated function when the service starts. It sends no request.
    ///
    /// Options that are expressions are known only when the function is called. Their values are not checked.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] with the function, its place in the source and the reason.
    ///
    /// ```
    /// # use lockattr::{Error, LockManager, distributed_lock};
    /// #[distributed_lock(key = "job:invoices", once_per = "23h")]
    /// async fn invoices() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let manager = LockManager::connect("memory://").await?;
    /// for lock in lockattr::registry() {
    ///     lock.check(&manager)?;
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
        let sharing = match (self.option("mode"), self.option("permits")) {
            (_, Some(permits)) => Sharing::Permits(permits.parse().unwrap_or(1)),
            (Some("shared"), None) => Sharing::Shared,
            (_, None) => Sharing::Exclusive,
        };
        let (once_per, once_for) = (self.option("once_per"), self.option("once_for"));
        let period = match once_per {
            Some(written) => humantime::parse_duration(written.trim_matches('"')).ok(),
            None => once_for.map(|_| LONGEST_PERIOD),
        };
        Needs {
            keys: self.keys,
            sharing,
            runs_once: once_per.or(once_for).is_some(),
            period,
            #[cfg(feature = "share")]
            shares_result: self.option("share_result") == Some("true"),
        }
    }
}
