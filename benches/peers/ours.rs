//! The library itself, by what the attribute comes down to.

use std::time::Duration;

use lockattr::{LockManager, LockOptions, Release};

use crate::load::Task;

/// Longer than any round: nobody gives up.
const WAIT: Duration = Duration::from_secs(60);

/// Longer than the pause between two acquisitions of one task, however busy the machine is.
const LINGER: Duration = Duration::from_secs(1);

/// How it is set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Plain,
    Background,
    Linger,
}

/// A manager, and what each acquisition asks of it.
pub(crate) struct Ours {
    manager: LockManager,
    options: LockOptions,
}

impl Ours {
    pub(super) async fn connect(url: &str, kind: Kind) -> Result<Self, String> {
        let mut builder = LockManager::builder().url(url).wait(WAIT);
        let mut options = LockOptions::new();
        match kind {
            Kind::Plain => {}
            Kind::Background => options = options.release(Release::Background),
            Kind::Linger => {
                builder = builder.linger(LINGER);
            }
        }
        let manager = builder.connect().await.map_err(|error| error.to_string())?;
        Ok(Self { manager, options })
    }

    pub(super) async fn hold(&self, key: &str, task: &mut Task) -> Result<(), String> {
        let body = async |lease: &lockattr::Lease| {
            task.inside(Some(lease.fencing_token().into())).await;
        };
        let held = self.manager.with_lock(key, self.options.clone(), body).await;
        held.map_err(|error| error.to_string())
    }
}
