//! What a test sees of the locks, waits for, and asserts.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::record::Entry;
use super::{Acquisition, Outcome, TestLocks};
use crate::Holder;

/// How long a test waits for something that never comes.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

impl TestLocks {
    /// Every acquisition so far by managers of this test, in the order in which they were asked
    /// for: those that wait, hold, are over, were refused, and nested calls that entered again.
    ///
    /// What the test holds as [somebody else](Self::hold) is not among them.
    pub fn acquisitions(&self) -> Vec<Acquisition> {
        self.shared.record.acquisitions(|_| true)
    }

    /// Those who wait for a key now, in the order in which they asked, with their functions and
    /// processes: in the store's line, in that of their process, or inside a hold of their own
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

    /// Waits until so many wait for a key.
    ///
    /// # Panics
    ///
    /// After a minute on tokio's clock, which is at once if that is paused and nothing else goes
    /// on.
    ///
    /// # Cancel safety
    ///
    /// Only looks; can be dropped at any time.
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

    /// Who has the lock, if anybody has; the first, where several have.
    #[track_caller]
    pub fn holder(&self, key: impl AsRef<str>) -> Option<Holder> {
        let key = self.key(key);
        self.shared.store.locks.holders(&key).into_iter().map(|(holder, _)| holder).next()
    }

    /// Waits until code under test has the lock, and returns how it came to it. What the test holds
    /// as [somebody else](Self::hold) does not count.
    ///
    /// # Panics
    ///
    /// As [`until_waiting`](Self::until_waiting).
    ///
    /// # Cancel safety
    ///
    /// Only looks; can be dropped at any time.
    pub async fn until_held(&self, key: impl AsRef<str>) -> Acquisition {
        let key = self.key(key);
        let held = || self.at(Outcome::Held, key.as_str()).into_iter().next();
        let held = until(self.shared.record.changed(), held, || None).await;
        held.unwrap_or_else(|| panic!("after {LONG_ENOUGH:?} no caller holds `{key}`; {self:#?}"))
    }

    /// Waits until no caller has the lock: given back, as a dropped guard is a little later, or
    /// ended by itself.
    ///
    /// # Panics
    ///
    /// As [`until_waiting`](Self::until_waiting).
    ///
    /// # Cancel safety
    ///
    /// Only looks; can be dropped at any time.
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
    /// The lock of a guard that was dropped is given back a little later, and so is one that came to
    /// a call just as that gave up: [wait](Self::until_free) for that.
    ///
    /// # Panics
    ///
    /// If somebody has.
    #[track_caller]
    pub fn assert_free(&self, key: impl AsRef<str>) {
        let key = key.as_ref();
        if let Some(holder) = self.holder(key) {
            panic!("`{key}` is not free: it is held by {holder}");
        }
    }

    /// Asserts that nothing is held any more by anybody, nor waited for: the end of a good test.
    /// What is on its way back it waits for.
    ///
    /// # Panics
    ///
    /// If something is left: with all that is.
    ///
    /// # Cancel safety
    ///
    /// Only looks; can be dropped at any time.
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

    /// What happened so far, a line each: `product:42 held`, `product:42 waiting`, `product:42
    /// released`, and what the test and its fakes [noted](Self::note) in between.
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

/// Waits until `look` finds something: looks at each change, and at the instant at which something
/// may change by itself.
async fn until<T>(
    changed: &Notify,
    look: impl Fn() -> Option<T>,
    by_itself: impl Fn() -> Option<Instant>,
) -> Option<T> {
    let limit = Instant::now() + LONG_ENOUGH;
    loop {
        let mut change = pin!(changed.notified());
        // Listen first, look second: a change in between is then not missed.
        change.as_mut().enable();
        if let Some(found) = look() {
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
