//! lockattr, called as the attribute's expansion calls it.

use std::time::Duration;

use lockattr::{LockManager, LockOptions, Mode, Release};

use crate::load::Task;

/// Longer than any round, so that no call gives up.
const WAIT: Duration = Duration::from_secs(60);

/// Longer than the pause between two acquisitions of one task, even on a busy machine.
const LINGER: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Plain,
    Background,
    Linger,
    Permits,
    Mixed,
}

/// The number of holders, if several are allowed.
const PERMITS: u32 = 4;

/// One of this many acquisitions of a task writes, the others read.
const WRITES: u64 = 4;

pub(crate) struct Ours {
    manager: LockManager,
    options: LockOptions,
    /// The options of acquisitions that write.
    writes: Option<LockOptions>,
}

impl Ours {
    pub(super) async fn connect(url: &str, kind: Kind) -> Result<Self, String> {
        let mut builder = LockManager::builder().url(url).wait(WAIT);
        let mut options = LockOptions::new();
        let mut writes = None;
        match kind {
            Kind::Plain => {}
            Kind::Background => options = options.release(Release::Background),
            Kind::Linger => {
                builder = builder.linger(LINGER);
            }
            Kind::Permits => options = options.permits(PERMITS),
            Kind::Mixed => {
                writes = Some(options.clone().mode(Mode::Exclusive));
                options = options.mode(Mode::Shared);
            }
        }
        let manager = builder.connect().await.map_err(|error| error.to_string())?;
        Ok(Self { manager, options, writes })
    }

    pub(super) async fn hold(&self, key: &str, task: &mut Task) -> Result<(), String> {
        let nth = task.nth();
        let body = async |lease: &lockattr::Lease| {
            task.inside(Some(lease.fencing_token().into())).await;
        };
        let writes = self.writes.as_ref().filter(|_| nth.is_multiple_of(WRITES));
        let options = writes.unwrap_or(&self.options).clone();
        let held = self.manager.with_lock(key, options, body).await;
        held.map_err(|error| error.to_string())
    }
}
