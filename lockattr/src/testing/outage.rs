//! What a test does to the network between its managers and their store.

use std::time::Duration;

use super::TestLocks;
use super::network::Fault;

impl TestLocks {
    /// Cuts the store off: every request is refused at once, with [`Error::Store`], until it is
    /// [mended](Self::mend). No caller learns of a lock that becomes free, renewals fail, and holders
    /// learn by their own deadlines that their leases have ended.
    ///
    /// [`Error::Store`]: crate::Error::Store
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::testing::TestLocks;
    /// use lockattr::{Error, LockOptions};
    ///
    /// let locks = TestLocks::new();
    /// let guard = locks.manager().acquire("stock", LockOptions::new()).await?;
    /// locks.cut();
    /// let refused = locks.manager().try_acquire("report", LockOptions::new()).await;
    /// assert!(matches!(refused, Err(Error::Store { .. })));
    /// guard.lost().await; // ten seconds later
    /// locks.mend();
    /// assert!(locks.manager().try_acquire("report", LockOptions::new()).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn cut(&self) {
        self.shared.store.network().set(Fault::Cut);
    }

    /// Lets every request hang until the store is [mended](Self::mend): those that hang for a
    /// second fail, and have had no effect; the others then go on.
    pub fn hang(&self) {
        self.shared.store.network().set(Fault::Hanging);
    }

    /// Loses every answer until the store is [mended](Self::mend): requests take effect, and fail
    /// a second later as if they had not. A lock may be taken so without anybody's knowing.
    pub fn lose_answers(&self) {
        self.shared.store.network().set(Fault::AnswersLost);
    }

    /// Makes every request take so long, until the store is [mended](Self::mend).
    pub fn slow(&self, time: Duration) {
        self.shared.store.network().delay(time);
    }

    /// Refuses the next requests, of whichever kind, and lets those after them through. A batch of
    /// renewals or releases is one request.
    pub fn fail_next(&self, requests: u32) {
        self.shared.store.network().fail_next(requests);
    }

    /// Ends [`cut`](Self::cut), [`hang`](Self::hang), [`lose_answers`](Self::lose_answers),
    /// [`slow`](Self::slow) and [`fail_next`](Self::fail_next). A waiter asks again.
    pub fn mend(&self) {
        self.shared.store.mend();
    }

    /// How many requests the store was sent so far. What is entered again, or handed off inside of
    /// a process, needs none.
    pub fn requests(&self) -> u64 {
        self.shared.store.network().requests()
    }
}
