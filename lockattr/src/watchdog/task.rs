//! The watchdog's task: sends what is due, and acts on the answers.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::Handle;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep_until};

use super::Watchdog;
use super::queue::PendingRelease;
use crate::LostReason;
use crate::store::{Release, Renew, Renewal, Store, StoreError};

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
}

impl Runner {
    /// Starts the task on `runtime` unless it runs.
    pub(super) fn start(watchdog: &Arc<Watchdog>, runtime: &Handle) {
        if !watchdog.running.swap(true, Ordering::AcqRel) {
            // Made before the task, so that a runtime that drops it unpolled is noticed too.
            let runner = Self { watchdog: watchdog.clone(), runtime: runtime.clone() };
            runtime.spawn(runner.run());
        }
    }

    async fn run(self) {
        // A store that panics must not leave the other leases unwatched.
        while AssertUnwindSafe(self.drive()).catch_unwind().await.is_err() {
            tracing::error!("the watchdog's task panicked in a store; going on");
        }
    }

    async fn drive(&self) {
        let mut under_way = FuturesUnordered::<UnderWay>::new();
        loop {
            let due = self.watchdog.queue().due(Instant::now());
            under_way.extend(self.watchdog.adopted().drain(..));
            if !due.renewals.is_empty() {
                under_way.push(send_renewals(self.watchdog.store.clone(), due.renewals));
            }
            if !due.releases.is_empty() {
                under_way.push(send_release(self.watchdog.store.clone(), due.releases));
            }
            if self.watchdog.is_closing() && due.next.is_none() && under_way.is_empty() {
                return;
            }
            let next = due.next.unwrap_or_else(Instant::now);
            // No branch waits for another: a store that hangs delays no deadline.
            tokio::select! {
                Some(answer) = under_way.next() => self.watchdog.settle(answer),
                () = self.watchdog.wake.notified() => {}
                () = sleep_until(next), if due.next.is_some() => {}
            }
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.watchdog.running.store(false, Ordering::Release);
        self.watchdog.settled.notify_waiters();
        // Holders on other runtimes still need the task.
        let next = self.watchdog.queue().runtime_besides(self.runtime.id());
        if let Some(runtime) = next {
            Self::start(&self.watchdog, &runtime);
        }
    }
}

fn send_renewals(store: Arc<dyn Store>, batch: Vec<(u64, Renewal)>) -> UnderWay {
    Box::pin(async move {
        let (ids, renewals): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let asked = Instant::now();
        let answers = store.renew(&renewals).await;
        let answers = ids.into_iter().zip(renewals).zip(answers);
        Answer::Renewed { asked, answers: answers.map(|((id, r), a)| (id, r, a)).collect() }
    })
}

/// Unconstrained, because the first poll has to send: tokio's budget must not hold it back.
pub(super) fn send_release(store: Arc<dyn Store>, batch: Vec<PendingRelease>) -> UnderWay {
    Box::pin(unconstrained(async move {
        let claims: Vec<_> = batch.iter().map(|release| release.claim.clone()).collect();
        let answers = store.release(&claims).await;
        Answer::Released(batch.into_iter().zip(answers).collect())
    }))
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
                    if let Err(error) = answer {
                        let key = release.claim.key().as_str();
                        tracing::debug!(key, %error, "a release got no answer; trying again");
                        self.queue().release_again(release, now);
                        // The task may sleep past what was just put back.
                        self.wake.notify_one();
                    }
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
        let Some(hold) = self.queue().hold(id) else {
            return;
        };
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
}
