//! The last results that this process computed or read, for its own callers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::lock::key::LockKey;
use crate::platform::sync::Mutex;

/// How many bytes of results a process keeps. Beyond that, its callers read them from the store.
const MAX_KEPT: usize = 16 * 1024 * 1024;

/// The last result of each key.
#[derive(Debug, Default)]
pub(in crate::manager) struct Results(Mutex<HashMap<Box<str>, Kept>>);

#[derive(Debug)]
struct Kept {
    of: Box<str>,
    json: Arc<str>,
    /// When its body ended, or earlier.
    ended: Instant,
    until: Instant,
}

impl Results {
    /// Keeps a result for `time`, unless a later one is kept.
    pub(super) fn keep(
        &self,
        key: &LockKey,
        of: &str,
        json: &Arc<str>,
        ended: Instant,
        time: Duration,
    ) {
        let (mut kept, now) = (self.0.lock(), Instant::now());
        kept.retain(|_, kept| kept.until > now);
        let bytes: usize = kept.values().map(|kept| kept.json.len()).sum();
        let has_room = bytes + json.len() <= MAX_KEPT;
        if has_room && kept.get(key.name()).is_none_or(|kept| kept.ended <= ended) {
            let until = now + time;
            kept.insert(
                key.name().into(),
                Kept { of: of.into(), json: json.clone(), ended, until },
            );
        }
    }

    /// The result of a body that ended after `began`.
    pub(super) fn since(&self, key: &LockKey, of: &str, began: Instant) -> Option<Arc<str>> {
        let kept = self.0.lock();
        let kept = kept.get(key.name()).filter(|kept| began < kept.ended && *kept.of == *of)?;
        Some(kept.json.clone())
    }
}
