//! A claim on its way to the store and back, and what has to be undone if its caller gives up.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Shared;
use crate::guard::Ahead;
use crate::hold::{Granted, validity};
use crate::options::Terms;
use crate::retry::Attempts;
use crate::store::{
    Acquire, Acquiring, Claim, Expected, Grant, News, Releasing, StoreError, Waiting,
};
use crate::{FencingToken, Holder, LockGuard};

/// What an attempt near the deadline gets at least, or no answer could ever meet it.
const LEAST_TIME_TO_ANSWER: Duration = Duration::from_millis(250);

/// Why an attempt did not get the lock.
pub(super) enum Refusal {
    Held {
        holder: Option<Box<Holder>>,
        /// After how long to look again, where the claim stands in line.
        in_line: Option<Duration>,
    },
    Unknown(StoreError),
}

/// A claim on its way: whatever the store may have granted without our knowing, and its place in
/// the line, is given back when this is dropped, at whichever await point.
pub(super) struct Asking<'a> {
    shared: &'a Shared,
    terms: &'a Terms,
    claim: Arc<Claim>,
    /// The place among those of this process, where there is a line of them.
    ahead: Option<Ahead>,
    /// What the store tells, once the claim may stand in its line.
    expected: Option<Expected>,
    /// Whether an attempt is under way or got no answer, or the claim stands in line. Sticky: a
    /// request that nobody answered may still arrive after a later one was refused.
    unsure: bool,
    /// Before it was first asked for: no grant is older.
    began: Instant,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        claim: Claim,
        terms: &'a Terms,
        ahead: Option<Ahead>,
    ) -> Self {
        shared.watchdog.asks();
        let (claim, began) = (Arc::new(claim), Instant::now());
        Self { shared, terms, claim, ahead, expected: None, unsure: false, began }
    }

    /// Asks the store; in line, if there is time to wait.
    pub(super) async fn ask(&mut self, attempts: &Attempts) -> Result<LockGuard, Refusal> {
        let was_unsure = std::mem::replace(&mut self.unsure, true);
        let (ttl, asked) = (self.terms.ttl, Instant::now());
        let mut wish = Acquiring::new(self.claim.clone(), ttl);
        if attempts.can_wait(asked) {
            let token = self.claim.token();
            self.expected.get_or_insert_with(|| self.shared.inbox.expect(token));
            wish = wish.waiting(Waiting::InLine);
        }
        let answer = self.shared.watchdog.store().acquire(&wish);
        let answer = match attempts.cut(asked, LEAST_TIME_TO_ANSWER) {
            Some(cut) => timeout_at(cut, answer).await.unwrap_or_else(|_| Err(too_late())),
            None => answer.await,
        };
        match answer {
            // A grant that came after its own lease had lapsed is none. Still unsure: the next
            // attempt takes it over, or it is undone.
            Ok(Acquire::Acquired { .. }) if Instant::now() >= asked + validity(ttl) => {
                Err(Refusal::Unknown(lapsed(ttl)))
            }
            Ok(Acquire::Acquired { fencing, wanted }) => {
                Ok(self.granted(fencing, asked, wanted).await)
            }
            Ok(Acquire::Held { holder, in_line }) => {
                self.unsure = was_unsure || in_line.is_some();
                Err(Refusal::Held { holder, in_line })
            }
            Err(error) => {
                self.unsure = was_unsure || !error.is_not_sent();
                Err(Refusal::Unknown(error))
            }
        }
    }

    /// Waits for a grant, until `until` or until it is time to ask again.
    pub(super) async fn granted_before(&mut self, mut until: Instant) -> Option<LockGuard> {
        let Some(expected) = &self.expected else {
            sleep_until(until).await;
            return None;
        };
        let grant = loop {
            let news = tokio::select! {
                biased;
                news = expected.news() => news,
                () = sleep_until(until) => return None,
            };
            match news {
                News::Granted(grant) => break grant,
                News::AskAgain(at) if at <= Instant::now() => return None,
                News::AskAgain(at) => until = until.min(at),
            }
        };
        let Grant { fencing, since, wanted } = grant;
        let since = since.max(self.began);
        // One that came late is asked for again: that makes its lease begin anew.
        let enough = since + validity(self.terms.ttl) / 2;
        if Instant::now() >= enough {
            return None;
        }
        Some(self.granted(fencing, since, wanted).await)
    }

    /// The lock is ours since `asked`.
    async fn granted(&mut self, fencing: FencingToken, asked: Instant, wanted: bool) -> LockGuard {
        let terms = self.terms;
        let granted = Granted {
            claim: self.claim.clone(),
            fencing,
            asked,
            ttl: terms.ttl,
            renew: terms.renew,
            max_hold: terms.max_hold,
        };
        let ahead = self.ahead.take();
        if let Some(ahead) = &ahead {
            ahead.granted(wanted, Instant::now());
        }
        let (guard, woken) =
            LockGuard::granted(granted, terms.hold_at_least, ahead, &self.shared.watchdog);
        self.unsure = false;
        self.claim.left_line();
        if woken {
            // What a task wakes is next on its own thread, and no other thread takes it from
            // there: a body that computes from its first line would keep the watchdog.
            yield_now().await;
        }
        guard
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if self.unsure {
            let until = Instant::now() + self.terms.ttl;
            let lock = Releasing::new(self.claim.clone());
            self.shared.watchdog.release_later(lock, until, false);
        }
        self.shared.watchdog.has_asked();
    }
}

fn too_late() -> StoreError {
    StoreError::new("it did not answer before the `wait` was over")
}

fn lapsed(ttl: Duration) -> StoreError {
    StoreError::new(format!(
        "its answer took longer than the whole lease: make `ttl` longer than {ttl:?}"
    ))
}
