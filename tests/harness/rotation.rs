//! Credentials that change while programs lock: a secret store, and callers of whom none may notice.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lockattr::store::Credentials;
use lockattr::{Error, LockManager, LockOptions};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

use crate::eventually;

/// The credentials that a program's secret store has now.
#[derive(Clone, Debug)]
pub struct Rotating(Arc<Mutex<Credentials>>);

impl Rotating {
    /// Has these credentials at first.
    pub fn new(first: Credentials) -> Self {
        Self(Arc::new(Mutex::new(first)))
    }

    /// Replaces the credentials.
    pub async fn set(&self, next: Credentials) {
        *self.change().await = next;
    }

    /// The secret store does not answer as long as the returned value exists: the server changes
    /// meanwhile.
    pub async fn change(&self) -> MutexGuard<'_, Credentials> {
        self.0.lock().await
    }

    /// Returns the provider, for the manager or the store.
    pub fn provider(
        &self,
    ) -> impl Fn() -> BoxFuture<'static, Result<Credentials, Infallible>> + Send + Sync + use<>
    {
        let current = self.0.clone();
        move || {
            let current = current.clone();
            async move { Ok(current.lock().await.clone()) }.boxed()
        }
    }
}

/// How a caller releases a lock.
#[derive(Clone, Copy, Debug)]
pub enum Release {
    /// It waits for the reply.
    Awaited,
    /// In the background, where a release that was cut off is sent again.
    InBackground,
}

/// Tasks that acquire locks and release them, until they are stopped or an acquisition fails.
#[derive(Debug)]
pub struct Load {
    options: LockOptions,
    release: Release,
    stopped: Arc<AtomicBool>,
    callers: Vec<Caller>,
}

#[derive(Debug)]
struct Caller {
    acquired: Arc<AtomicUsize>,
    /// Returns the last release that failed.
    task: JoinHandle<Result<Option<Error>, Error>>,
}

/// What a load has done.
#[derive(Debug)]
pub struct Worked {
    /// How many locks were acquired.
    pub acquired: usize,
    /// Why a release failed, if one did. A lock may be lost with its connection.
    pub failed_release: Option<Error>,
}

impl Load {
    /// A load without callers.
    pub fn new(options: LockOptions, release: Release) -> Self {
        Self { options, release, stopped: Arc::default(), callers: Vec::new() }
    }

    /// Adds a task that acquires these keys in turn.
    pub fn add<K: Into<String>>(
        &mut self,
        manager: &LockManager,
        keys: impl IntoIterator<Item = K>,
    ) {
        let keys: Vec<String> = keys.into_iter().map(Into::into).collect();
        let (manager, options, release) = (manager.clone(), self.options.clone(), self.release);
        let (stopped, acquired) = (self.stopped.clone(), Arc::<AtomicUsize>::default());
        let counted = acquired.clone();
        let task = tokio::spawn(async move {
            let mut failed_release = None;
            while !stopped.load(Ordering::Relaxed) {
                for key in &keys {
                    let held = manager.acquire(key, options.clone()).await?;
                    counted.fetch_add(1, Ordering::Relaxed);
                    match release {
                        Release::Awaited => {
                            failed_release = held.release().await.err().or(failed_release);
                        }
                        Release::InBackground => drop(held),
                    }
                }
            }
            Ok(failed_release)
        });
        self.callers.push(Caller { acquired, task });
    }

    /// Returns once each caller has acquired so many more locks, or one has failed.
    pub async fn goes_on(&self, more: usize) {
        let acquired = |caller: &Caller| caller.acquired.load(Ordering::Relaxed);
        let targets: Vec<_> = self.callers.iter().map(|caller| acquired(caller) + more).collect();
        let goes_on = async || {
            let mut callers = self.callers.iter().zip(&targets);
            self.callers.iter().any(|caller| caller.task.is_finished())
                || callers.all(|(caller, target)| acquired(caller) >= *target)
        };
        eventually("every caller has acquired locks", goes_on).await;
    }

    /// Stops the callers.
    ///
    /// # Errors
    ///
    /// That of an acquisition that failed.
    ///
    /// # Panics
    ///
    /// If a caller has panicked.
    pub async fn stop(self) -> Result<Worked, Error> {
        self.stopped.store(true, Ordering::Relaxed);
        let mut worked = Worked { acquired: 0, failed_release: None };
        for Caller { acquired, task } in self.callers {
            let failed_release = task.await.expect("no caller panics")?;
            worked.acquired += acquired.load(Ordering::Relaxed);
            worked.failed_release = worked.failed_release.or(failed_release);
        }
        Ok(worked)
    }
}
