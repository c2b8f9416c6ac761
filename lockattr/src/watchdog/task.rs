//! The watchdog's task: sends what is due, and acts on the answers.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep_until};

use super::Watchdog;
use super::queue::PendingRelease;
use crate::LostReason;
use crate::store::{Release, Releasing, Renew, Renewal, Store, StoreError};

/// A command under way, with what its answer means.
pub(super) type UnderWay = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// What the store said to one batch.
pub(super) enum Answer {
    Renewed { asked: Instant, answers: Vec<(u64, Renewal, Result<Renew, StoreError>)> },
    Released(Vec<(PendingRelease, Result<Release, StoreError>)>),
}

/// The running task; its end, however it comes, is noted.
pub(super) struct Runner {
    watchdog: Arc<Watchdog>,
    runtime: Handle,
    wake: Arc<Notify>,
}

impl Runner {
    /// Starts the task on `runtime` unless it runs there.
    pub(super) fn start(watchdog: &Arc<Watchdog>, runtime: &Handle) {
        let entered = watchdog.queue().enter(runtime.id());
        if let Some(wake) = entered {
            // Made before the task, so that a runtime that drops it unpolled is noticed too.
            let runner = Self { watchdog: watchdog.clone(), runtime: runtime.clone(), wake };
            runtime.spawn(runner.run());
        }
    }

    async fn run(self) {
        let mut under_way = FuturesUnordered::<UnderWay>::new();
        loop {
            let due = self.watchdog.queue().due(Instant::now());
            under_way.extend(due.adopted);
            if !due.renewals.is_empty() {
                under_way.push(send_renewals(self.watchdog.store.clone(), due.renewals));
            }
            if !due.releases.is_empty() {
                under_way.push(send_releases(self.watchdog.store.clone(), due.releases));
            }
            if under_way.is_empty() && self.watchdog.queue().may_leave(self.runtime.id()) {
                return;
            }
            let next = due.next.unwrap_or_else(Instant::now);
            // No branch waits for another: a store that hangs delays no deadline.
            tokio::select! {
                Some(answer) = under_way.next() => self.watchdog.settle(answer),
                () = self.wake.notified() => {}
                () = sleep_until(next), if due.next.is_some() => {}
            }
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.watchdog.queue().leave(self.runtime.id());
        self.watchdog.settled.notify_waiters();
    }
}

fn send_renewals(store: Arc<dyn Store>, batch: Vec<(u64, Renewal)>) -> UnderWay {
    Box::pin(async move {
        let (ids, renewals): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let asked = Instant::now();
        let answers = answers(async { store.renew(&renewals).await }, renewals.len()).await;
        let answers = ids.into_iter().zip(renewals).zip(answers);
        Answer::Renewed { asked, answers: answers.map(|((id, r), a)| (id, r, a)).collect() }
    })
}

/// Unconstrained, because the first poll has to send: tokio's budget must not hold it back.
pub(super) fn send_releases(store: Arc<dyn Store>, batch: Vec<PendingRelease>) -> UnderWay {
    Box::pin(unconstrained(async move {
        let claims: Vec<_> = batch.iter().map(|r| Releasing::new(r.claim.clone())).collect();
        let answers = answers(async { store.release(&claims).await }, claims.len()).await;
        Answer::Released(batch.into_iter().zip(answers).collect())
    }))
}

/// An answer for each of `count`, also from a store that panics or answers too little: what it did
/// is unknown then, and the others must not suffer.
async fn answers<T>(
    asked: impl Future<Output = Vec<Result<T, StoreError>>>,
    count: usize,
) -> Vec<Result<T, StoreError>> {
    let mut answers = AssertUnwindSafe(asked).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("the store panicked");
        Vec::new()
    });
    answers.resize_with(count, || Err(StoreError::new("the store gave no answer")));
    answers
}

impl Watchdog {
    /// Acts on an answer.
    pub(super) fn settle(&self, answer: Answer) {
        let now = Instant::now();
        match answer {
            Answer::Renewed { asked, answers } => {
                for (id, renewal, answer) in answers {
                    self.settle_renewal(id, &renewal, answer, asked, now);
                }
            }
            Answer::Released(answers) => {
                for (release, answer) in answers {
                    self.settle_release(release, answer, now);
                }
            }
        }
        self.settled.notify_waiters();
    }

    fn settle_renewal(
        &self,
        id: u64,
        renewal: &Renewal,
        answer: Result<Renew, StoreError>,
        asked: Instant,
        now: Instant,
    ) {
        let key = renewal.claim.key().as_str();
        // Released meanwhile: the answer concerns nobody.
        let Some(hold) = self.queue().hold(id) else { return };
        match answer {
            Ok(Renew::Renewed) => {
                hold.renewed(asked, renewal.ttl);
                self.queue().renewed(id, asked, renewal.ttl);
            }
            Ok(Renew::NotHeld) => {
                tracing::warn!(key, "the lease was lost: the store no longer has it as ours");
                hold.lose(LostReason::Taken);
            }
            Err(error) => {
                tracing::debug!(key, %error, "a renewal got no answer; trying again");
                self.queue().renew_again(id, now);
            }
        }
    }

    fn settle_release(
        &self,
        release: PendingRelease,
        answer: Result<Release, StoreError>,
        now: Instant,
    ) {
        let key = release.claim.key().as_str();
        match answer {
            Ok(Release::Released) => {}
            Ok(Release::NotHeld) => {
                if release.held {
                    tracing::warn!(key, "the lock was no longer ours when it was released");
                }
            }
            Err(error) => {
                tracing::debug!(key, %error, "a release got no answer; trying again");
                self.queue().release_again(release, now);
            }
        }
    }
}
