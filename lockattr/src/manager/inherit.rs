//! Carries the call chain, and the manager of a scope, into a task or a thread.

use super::default_manager;
use crate::hold::chain::{self, ChainPosition};

/// Carries the call chain into a spawned task: its calls re-enter the holds around this call,
/// instead of waiting for them.
///
/// The [scope](crate::LockManager::scope) of a manager is carried along too. The task does not
/// extend any hold: once the hold around it is released, its nested calls get
/// [`Error::Lost`](crate::Error::Lost). If it was spawned by a nested call that has returned, its
/// calls and those of the outer call enter one at a time.
///
/// # Cancel safety
///
/// Dropping the returned future drops `future`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// manager.with_lock("report", LockOptions::new(), async |lease| {
///     let token = lease.fencing_token();
///     let part = lockattr::inherit(async move { lockattr::current().map(|l| l.fencing_token()) });
///     assert_eq!(tokio::spawn(part).await.unwrap(), Some(token));
/// }).await?;
/// # Ok(())
/// # }
/// ```
pub fn inherit<F: Future>(future: F) -> impl Future<Output = F::Output> {
    default_manager::in_current_scope(chain::in_current_chain(future))
}

/// Carries the call chain into plain code on another thread, as [`inherit`] does into a task.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, distributed_lock};
///
/// #[distributed_lock(key = "stock")]
/// fn count() -> Result<u32, lockattr::Error> {
///     Ok(lockattr::current().map_or(0, |lease| lease.depth()))
/// }
///
/// #[distributed_lock(key = "stock")]
/// async fn audit() -> Result<u32, lockattr::Error> {
///     let count = lockattr::inherit_blocking(count);
///     tokio::task::spawn_blocking(count).await.expect("it does not panic")
/// }
///
/// let manager = LockManager::connect("memory://").await?;
/// assert_eq!(manager.scope(audit()).await?, 2);
/// # Ok(())
/// # }
/// ```
pub fn inherit_blocking<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let (position, scope) = (ChainPosition::here(), default_manager::Scope::here());
    move || scope.run(|| position.run(work))
}
