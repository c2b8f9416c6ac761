//! The last results that this process computed or read, for its own callers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::lock::key::LockKey;
use crate::lock::result_word::ResultWord;
use crate::platform::sync::Mutex;

/// How many bytes of results a process keeps. Beyond that, its callers read them from the store.
const MAX_KEPT: usize = 16 * 1024 * 1024;

/// What a result takes besides its texts.
const OVERHEAD: usize = 256;

/// The last result of each key.
#[derive(Debug, Default)]
pub(in crate::manager) struct Results(Mutex<ByName>);

#[derive(Debug, Default)]
struct ByName {
    kept: HashMap<Box<str>, Kept>,
    bytes: usize,
    /// The number of bytes from which on the results whose time is over are removed.
    sweep_at: usize,
}

#[derive(Debug)]
struct Kept {
    id: u64,
    of: Box<str>,
    value: Arc<str>,
    /// When its body ended, or earlier.
    ended: Instant,
    until: Instant,
    bytes: usize,
}

impl Results {
    /// Keeps a result for `time`, unless a later one is kept.
    pub(super) fn keep(&self, key: &LockKey, result: ResultWord, ended: Instant, time: Duration) {
        let now = Instant::now();
        let ResultWord { id, of, value, .. } = result;
        let bytes = key.name().len() + of.len() + value.len() + OVERHEAD;
        let mut all = self.0.lock();
        if all.bytes + bytes > all.sweep_at {
            all.sweep(now);
        }
        if let Some(kept) = all.kept.get_mut(key.name()) {
            if kept.id == id {
                // The process that ran the body knows best when it ended.
                kept.ended = kept.ended.min(ended);
                return;
            }
            if kept.ended > ended {
                return;
            }
        }
        if all.bytes + bytes <= MAX_KEPT {
            let kept =
                Kept { id, of: of.into(), value: value.into(), ended, until: now + time, bytes };
            let before = all.kept.insert(key.name().into(), kept).map_or(0, |kept| kept.bytes);
            all.bytes = all.bytes + bytes - before;
        }
    }

    /// The result of a body that ended after `began`.
    pub(super) fn since(&self, key: &LockKey, of: &str, began: Instant) -> Option<Arc<str>> {
        let all = self.0.lock();
        let kept = all.kept.get(key.name()).filter(|kept| began < kept.ended && *kept.of == *of)?;
        Some(kept.value.clone())
    }
}

impl ByName {
    /// Removes what is over, and waits with the next time until there is twice as much.
    fn sweep(&mut self, now: Instant) {
        self.kept.retain(|_, kept| kept.until > now);
        self.bytes = self.kept.values().map(|kept| kept.bytes).sum();
        self.sweep_at = (self.bytes * 2).max(MAX_KEPT / 16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn key(name: &str) -> LockKey {
        LockKey::new("lock:", name).unwrap()
    }

    fn result(id: u64, value: impl Into<String>) -> ResultWord {
        ResultWord { lasts: SECOND, id, of: "u32".into(), value: value.into() }
    }

    /// Red without: the comparison of the ends, or the end that is known best.
    #[test]
    fn a_later_result_stays_and_counts_from_the_earliest_end_that_was_seen() {
        let (results, key, began) = (Results::default(), key("price"), Instant::now());
        let since =
            |after| results.since(&key, "u32", began + after).map(|value| value.to_string());
        results.keep(&key, result(2, "2"), began + 5 * SECOND, SECOND);
        results.keep(&key, result(1, "1"), began + 3 * SECOND, SECOND);
        assert_eq!(since(2 * SECOND).as_deref(), Some("2"));
        // Read from the store, with more or less doubt.
        results.keep(&key, result(2, "2"), began + 4 * SECOND, SECOND);
        results.keep(&key, result(2, "2"), began + 6 * SECOND, SECOND);
        assert_eq!(since(4 * SECOND - SECOND / 10).as_deref(), Some("2"));
        assert_eq!(since(4 * SECOND), None);
        results.keep(&key, result(3, "3"), began + 7 * SECOND, SECOND);
        assert_eq!(since(6 * SECOND).as_deref(), Some("3"));
    }

    /// Red without: the limit, the removal of what is over, or the count of bytes.
    #[test]
    fn a_process_keeps_a_bounded_number_of_bytes() {
        let (results, now) = (Results::default(), Instant::now());
        let megabyte = "x".repeat(1024 * 1024);
        // In place of the last one: only one counts.
        for id in 0..40 {
            results.keep(&key("one"), result(id, &*megabyte), now, 60 * SECOND);
        }
        assert!(results.0.lock().bytes < 2 * megabyte.len());
        for name in 0..40 {
            results.keep(&key(&name.to_string()), result(0, &*megabyte), now, 60 * SECOND);
        }
        let kept = results.0.lock().kept.len();
        assert!((10..=16).contains(&kept), "{kept}");
        // Their time is over when they are kept.
        let results = Results::default();
        for name in 0..40 {
            results.keep(&key(&name.to_string()), result(0, &*megabyte), now, Duration::ZERO);
        }
        assert!(results.0.lock().kept.contains_key("lock:39"), "there was no room");
    }
}
