//! Faults of the network between managers and their store.

use std::time::Duration;

use super::TestLocks;
use super::network::Fault;

impl TestLocks {
    /// Cuts the store off: every request is refused at once with [`Error::Store`], until the store
    /// is [mended](Self::mend). No caller is notified of a lock that becomes free, renewals fail,
    /// and holders notice by their own deadlines that their leases have ended.
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

    /// Lets every request hang until the store is [mended](Self::mend). A request that hangs for a
    /// second fails without effect; the others then continue.
    pub fn hang(&self) {
        self.shared.store.network().set(Fault::Hanging);
    }

    /// Loses every answer until the store is [mended](Self::mend): requests take effect, but fail
    /// after a second as if they had not. So a lock may be held without its caller's knowledge.
    pub fn lose_answers(&self) {
        self.shared.store.network().set(Fault::AnswersLost);
    }

    /// Delays every request by `time`, until the store is [mended](Self::mend).
    pub fn slow(&self, time: Duration) {
        self.shared.store.network().delay(time);
    }

    /// Refuses the next requests, of any kind. A batch of renewals or releases is one request.
    pub fn fail_next(&self, requests: u32) {
        self.shared.store.network().fail_next(requests);
    }

    /// Ends [`cut`](Self::cut), [`hang`](Self::hang), [`lose_answers`](Self::lose_answers),
    /// [`slow`](Self::slow) and [`fail_next`](Self::fail_next). Waiters retry.
    pub fn mend(&self) {
        self.shared.store.mend();
    }

    /// The number of requests sent to the store so far. A nested call, or a hand-off inside a
    /// process, sends none.
    pub fn requests(&self) -> u64 {
        self.shared.store.network().requests()
    }
}
