//! What a test inspects, waits for, and asserts.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::record::Entry;
use super::{Acquisition, Outcome, TestLocks};
use crate::Holder;

/// How long a test waits for something that never happens.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

impl TestLocks {
    /// Every acquisition so far by managers of this test, in the order of the requests: waiting,
    /// held, ended, refused, and nested calls.
    ///
    /// Locks that the test holds as [another client](Self::hold) are not included.
    pub fn acquisitions(&self) -> Vec<Acquisition> {
        self.shared.record.acquisitions(|_| true)
    }

    /// The callers that wait for a key now, in the order of their requests, with their functions
    /// and processes: in the store's queue, in that of their process, or inside a hold of their own
    /// call chain.
    #[track_caller]
    pub fn waiting(&self, key: impl AsRef<str>) -> Vec<Acquisition> {
        let key = self.key(key);
        self.at(Outcome::Waiting, key.as_str())
    }

    fn at(&self, outcome: Outcome, key: &str) -> Vec<Acquisition> {
        let is_it =
            |entry: &Entry| entry.outcome == outcome && entry.keys.iter().any(|of_it| of_it == key);
        self.shared.record.acquisitions(is_it)
    }

    /// Waits until this many callers wait for a key.
    ///
    /// # Panics
    ///
    /// After a minute on tokio's clock, which passes at once if the clock is paused and no other
    /// task runs.
    ///
    /// # Cancel safety
    ///
    /// Read-only; can be dropped at any time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::LockOptions;
    /// use lockattr::testing::TestLocks;
    ///
    /// let locks = TestLocks::new();
    /// let other = locks.hold("stock");
    /// let sold = tokio::spawn({
    ///     let manager = locks.manager().clone();
    ///     async move { manager.acquire("stock", LockOptions::new().function("sell")).await }
    /// });
    /// locks.until_waiting("stock", 1).await;
    /// assert_eq!(locks.waiting("stock")[0].function, Some("sell"));
    /// other.release();
    /// assert!(sold.await.unwrap().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn until_waiting(&self, key: impl AsRef<str>, count: usize) {
        let key = self.key(key);
        let enough = || (self.waiting(key.as_str()).len() >= count).then_some(());
        if until(self.shared.record.changed(), enough, || None).await.is_none() {
            let waiting = self.waiting(key.as_str());
            panic!(
                "after {LONG_ENOUGH:?} {} wait for `{key}`, not {count}; {self:#?}",
                waiting.len()
            );
        }
    }

    /// The holder of the lock, if it is held; the first one if there are several.
    #[track_caller]
    pub fn holder(&self, key: impl AsRef<str>) -> Option<Holder> {
        let key = self.key(key);
        self.shared.store.locks.holders(&key).into_iter().map(|(holder, _)| holder).next()
    }

    /// Waits until code under test has the lock, and returns its acquisition. Locks that the test
    /// holds as [another client](Self::hold) do not count.
    ///
    /// # Panics
    ///
    /// As [`until_waiting`](Self::until_waiting).
    ///
    /// # Cancel safety
    ///
    /// Read-only; can be dropped at any time.
    pub async fn until_held(&self, key: impl AsRef<str>) -> Acquisition {
        let key = self.key(key);
        let held = || self.at(Outcome::Held, key.as_str()).into_iter().next();
        let held = until(self.shared.record.changed(), held, || None).await;
        held.unwrap_or_else(|| panic!("after {LONG_ENOUGH:?} no caller holds `{key}`; {self:#?}"))
    }

    /// Waits until no caller has the lock: released (a little after its guard is dropped) or
    /// expired.
    ///
    /// # Panics
    ///
    /// As [`until_waiting`](Self::until_waiting).
    ///
    /// # Cancel safety
    ///
    /// Read-only; can be dropped at any time.
    pub async fn until_free(&self, key: impl AsRef<str>) {
        let key = self.key(key);
        let holders = || self.shared.store.locks.holders(&key);
        let ends = || holders().into_iter().map(|(_, ends)| ends).min();
        let free = || holders().is_empty().then_some(());
        if until(self.shared.store.changed(), free, ends).await.is_none() {
            panic!("after {LONG_ENOUGH:?} `{key}` is not free; {self:#?}");
        }
    }

    /// Asserts that no caller has the lock.
    ///
    /// The lock of a dropped guard is released a little later, and so is a lock that was granted
    /// just as its caller gave up: [wait](Self::until_free) for that.
    ///
    /// # Panics
    ///
    /// If the lock is held.
    #[track_caller]
    pub fn assert_free(&self, key: impl AsRef<str>) {
        let key = key.as_ref();
        if let Some(holder) = self.holder(key) {
            panic!("`{key}` is not free: it is held by {holder}");
        }
    }

    /// Asserts that no lock is held or waited for any more: the end of a good test. Waits for
    /// releases that are under way.
    ///
    /// # Panics
    ///
    /// If something is left; the message lists it.
    ///
    /// # Cancel safety
    ///
    /// Read-only; can be dropped at any time.
    pub async fn assert_nothing_left(&self) {
        for watchdog in self.shared.watchdogs() {
            watchdog.all_released().await;
        }
        let held = self.shared.store.locks.held().into_iter();
        let held = held.map(|(name, holder)| format!("`{name}` is held by {holder}"));
        let under_way = self.shared.record.acquisitions(|entry| {
            matches!(entry.outcome, Outcome::Asking | Outcome::Waiting | Outcome::Held)
        });
        let under_way = under_way.iter().map(|acquisition| format!("{acquisition}"));
        let left: Vec<_> = held.chain(under_way).collect();
        assert!(left.is_empty(), "something is left:\n  {}", left.join("\n  "));
    }

    /// The events so far, a line each: `product:42 held`, `product:42 waiting`, `product:42
    /// released`, and the lines that the test and its fakes [added](Self::note) in between.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::testing::TestLocks;
    /// use lockattr::{Error, distributed_lock};
    ///
    /// #[distributed_lock(key = "product:<id>")]
    /// async fn deduct(id: u64, stock: &FakeStock) -> Result<(), Error> {
    ///     stock.write(id).await;
    ///     Ok(())
    /// }
    ///
    /// struct FakeStock(TestLocks);
    ///
    /// impl FakeStock {
    ///     async fn write(&self, id: u64) {
    ///         self.0.note(format!("UPDATE stock … {id}"));
    ///     }
    /// }
    ///
    /// let locks = TestLocks::new();
    /// locks.scope(deduct(42, &FakeStock(locks.clone()))).await?;
    /// assert_eq!(locks.timeline(), ["product:42 held", "UPDATE stock … 42", "product:42 released"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timeline(&self) -> Vec<String> {
        self.shared.record.timeline()
    }

    /// The old name of [`timeline`](Self::timeline).
    #[deprecated(note = "renamed to `timeline`")]
    #[doc(hidden)]
    pub fn story(&self) -> Vec<String> {
        self.timeline()
    }

    /// Adds a line to the [timeline](Self::timeline).
    pub fn note(&self, line: impl Into<String>) {
        self.shared.record.note(line.into());
    }
}

/// Waits until `find` finds something: checks at each change, and when a lease ends.
async fn until<T>(
    changed: &Notify,
    find: impl Fn() -> Option<T>,
    by_itself: impl Fn() -> Option<Instant>,
) -> Option<T> {
    let limit = Instant::now() + LONG_ENOUGH;
    loop {
        let mut change = pin!(changed.notified());
        // Register first, check second, so that no change in between is missed.
        change.as_mut().enable();
        if let Some(found) = find() {
            return Some(found);
        }
        if Instant::now() >= limit {
            return None;
        }
        let next = by_itself().map_or(limit, |ends| ends.min(limit));
        tokio::select! {
            biased;
            () = change => {}
            () = sleep_until(next) => {}
        }
    }
}
