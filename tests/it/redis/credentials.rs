//! Passwords and users that rotate while locks are acquired, and a provider that names the new ones.

mod heartbeat;
mod provider;
mod rotation;
mod secrets;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::store::Credentials;
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Cli, eventually};
use tokio::task::JoinSet;

/// A load that makes no progress for so long has stopped.
const LIMIT: Duration = Duration::from_secs(60);

/// The credentials that a program's secret store has now.
#[derive(Clone)]
pub(crate) struct Rotating(Arc<Mutex<Credentials>>);

impl Rotating {
    pub(crate) fn new(user: &str, password: &str) -> Self {
        Self(Arc::new(Mutex::new(Credentials::new(user, password))))
    }

    pub(crate) fn set(&self, user: &str, password: &str) {
        *self.0.lock().unwrap() = Credentials::new(user, password);
    }

    /// The provider, to pass to the store.
    pub(crate) fn provider(
        &self,
    ) -> impl Fn() -> std::future::Ready<Result<Credentials, Infallible>> + Send + Sync + 'static
    {
        let current = self.0.clone();
        move || std::future::ready(Ok(current.lock().unwrap().clone()))
    }
}

/// Tasks that acquire locks until they are stopped: some of one task each, and one of all of them.
pub(crate) struct Load {
    acquired: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
    tasks: JoinSet<Result<(), Error>>,
}

impl Load {
    pub(crate) fn start(manager: &LockManager, tasks: usize) -> Self {
        let (acquired, stopped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let mut load = Self { acquired, stopped, tasks: JoinSet::new() };
        for task in 0..tasks {
            let (manager, acquired) = (manager.clone(), load.acquired.clone());
            let stopped = load.stopped.clone();
            load.tasks.spawn(async move {
                while !stopped.load(Ordering::Relaxed) {
                    for key in [format!("key-{task}"), "all".into()] {
                        let held = manager.acquire(key, LockOptions::new()).await?;
                        acquired.fetch_add(1, Ordering::Relaxed);
                        // In the background, where a release that was cut off is sent again.
                        drop(held);
                    }
                }
                Ok(())
            });
        }
        load
    }

    /// Returns once so many more locks have been acquired.
    pub(crate) async fn acquires(&self, more: usize) {
        let target = self.acquired.load(Ordering::Relaxed) + more;
        eventually(LIMIT, "locks are acquired", async || {
            self.acquired.load(Ordering::Relaxed) >= target
        })
        .await;
    }

    /// Stops, and returns how many locks were acquired, or the first error of an acquisition.
    pub(crate) async fn stop(mut self) -> Result<usize, Error> {
        self.stopped.store(true, Ordering::Relaxed);
        while let Some(task) = self.tasks.join_next().await {
            task.expect("no task panics")?;
        }
        Ok(self.acquired.load(Ordering::Relaxed))
    }
}

/// Gives the user this password and no other.
pub(crate) async fn set_password(cli: &Cli, user: &str, password: &str) {
    let password = format!(">{password}");
    let () = cli.query(&["ACL", "SETUSER", user, "resetpass", &password]).await;
}

/// Ends all connections of the user, as services do when a token is too old.
pub(crate) async fn cut(cli: &Cli, user: &str) -> usize {
    cli.query(&["CLIENT", "KILL", "USER", user]).await
}
