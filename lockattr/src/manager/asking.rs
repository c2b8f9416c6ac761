//! A claim on its way to the store and back, and what has to be undone if its caller gives up.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Shared;
use super::local_queue::LocalQueue;
use crate::hold::known::{Ahead, Known};
use crate::lease::{Granted, validity};
use crate::lock::options::Terms;
use crate::lock::retry::Attempts;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, Grant, Notification, ReleaseRequest, StoreError,
    Subscription, Waiting,
};
use crate::{FencingToken, Holder, LockGuard};

/// What an attempt near the deadline gets at least, or no answer could ever meet it.
pub(super) const LEAST_TIME_TO_ANSWER: Duration = Duration::from_millis(250);

/// How often the head of a queue shows that it lives while it waits.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// So many waiting claims of one manager look every `retry_delay`; of twice as many, each looks half as
/// often.
const LOOKS_AT_ONCE: u32 = 32;

/// Why an attempt did not get the lock.
pub(super) enum Refusal {
    Held {
        holder: Option<Box<Holder>>,
        /// After how long to look again, where the claim stands in line.
        queued: Option<Duration>,
    },
    Unknown(StoreError),
}

impl Refusal {
    /// Whether the claim waits in the store's queue now.
    pub(super) fn is_queued(&self) -> bool {
        matches!(self, Self::Held { queued: Some(_), .. })
    }

    fn known(&self) -> Known {
        match self {
            Self::Held { holder, .. } => Known::Taken(holder.clone()),
            Self::Unknown(error) => Known::Unanswered(error.clone()),
        }
    }
}

/// By what the store granted a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Question,
    /// While another claim of this process had it too, in whose place this one asked.
    QuestionBeside,
    /// The claim stood in the store's queue, and its turn came.
    Message,
}

/// A claim on its way: whatever the store may have granted without our knowing, and its place in
/// the line, is given back when this is dropped, at whichever await point.
pub(super) struct Asking<'a> {
    shared: &'a Shared,
    terms: &'a Terms,
    claim: Arc<Claim>,
    /// The head of the queue of this process, where there is one and this claim does not ask beside it.
    ahead: Option<Ahead>,
    /// That queue.
    queue: Option<&'a LocalQueue<'a>>,
    /// The claim of this process whose place it shares.
    beside: Option<Arc<Claim>>,
    /// What the store tells, once the claim may stand in its line.
    expected: Option<Subscription>,
    /// Whether an attempt is under way or got no answer, or the claim stands in line. Sticky: a
    /// request that nobody answered may still arrive after a later one was refused.
    unsure: bool,
    /// Whether a question got no answer: it may still arrive, and queue the claim that was granted its lock
    /// meanwhile.
    unanswered: bool,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        claim: Claim,
        terms: &'a Terms,
        ahead: Option<Ahead>,
        queue: Option<&'a LocalQueue<'a>>,
    ) -> Self {
        shared.core.watchdog.asks();
        Self {
            beside: None,
            shared,
            terms,
            claim: Arc::new(claim),
            ahead,
            queue,
            expected: None,
            unsure: false,
            unanswered: false,
        }
    }

    /// The same, in the place of this claim as long as that one has the lock.
    pub(super) fn beside(mut self, beside: Option<Arc<Claim>>) -> Self {
        self.beside = beside;
        self
    }

    /// Asks the store without waiting in its queue, beside the asker of this process, which hears of a
    /// refusal.
    /// One that asks for all has others wait for it, whose time is over.
    pub(super) async fn ask_beside(
        &mut self,
        attempts: &Attempts,
        for_all: bool,
    ) -> Option<LockGuard> {
        let (wish, now) = (self.wish(), Instant::now());
        let cut = attempts.cut(now, LEAST_TIME_TO_ANSWER);
        let cut = cut.or(for_all.then(|| now + LEAST_TIME_TO_ANSWER));
        match self.ask_for(wish, cut).await {
            Ok(guard) => Some(guard),
            Err(refusal) => {
                if let Some(queue) = self.queue {
                    queue.learned(refusal.known());
                }
                None
            }
        }
    }

    /// Asks the store, and waits in its queue if there is time for that.
    pub(super) async fn ask(&mut self, attempts: &Attempts) -> Result<LockGuard, Refusal> {
        let mut wish = self.wish();
        let asked = Instant::now();
        if attempts.can_wait(asked) {
            let token = self.claim.token();
            self.expected.get_or_insert_with(|| self.shared.subscriber.subscribe(token));
            wish = wish.waiting(Waiting::Queued).recheck_every(self.recheck_every());
        }
        let refused = self.ask_for(wish, attempts.cut(asked, LEAST_TIME_TO_ANSWER)).await;
        if let (Err(refusal), Some(ahead)) = (&refused, &self.ahead) {
            ahead.learned(refusal.known());
        }
        refused
    }

    /// What each of its questions asks for.
    fn wish(&self) -> AcquireRequest {
        AcquireRequest::new(self.claim.clone(), self.terms.ttl).beside(self.beside.clone())
    }

    /// How often to look while it waits: each `retry_delay`, and less often where this manager waits for
    /// so many locks that the looks alone would keep the store busy.
    fn recheck_every(&self) -> Duration {
        let waits = u32::try_from(self.shared.subscriber.waiting()).unwrap_or(u32::MAX);
        self.terms.patience.delay.saturating_mul(waits.div_ceil(LOOKS_AT_ONCE).max(1))
    }

    /// Asks the store, until `cut`.
    async fn ask_for(
        &mut self,
        wish: AcquireRequest,
        cut: Option<Instant>,
    ) -> Result<LockGuard, Refusal> {
        let was_unsure = std::mem::replace(&mut self.unsure, true);
        let had_no_answer = std::mem::replace(&mut self.unanswered, true);
        let (ttl, asked) = (self.terms.ttl, Instant::now());
        let store = self.shared.core.store();
        // A release that is sent later is executed later.
        let beside = self.beside.as_ref();
        let is_beside = beside.is_some_and(|it| self.shared.core.watchdog.holds(it.token()));
        let answer = store.acquire(&wish);
        let answer = match cut {
            Some(cut) => match timeout_at(cut, answer).await {
                Ok(answer) => answer,
                // The store lives, and has more to do than it can: that is no outage.
                Err(_) if store.answered_since(self.claim.key(), asked) => {
                    return Err(Refusal::Held { holder: None, queued: None });
                }
                Err(_) => match self.known_before(asked, cut) {
                    Some(holder) => return Err(Refusal::Held { holder, queued: None }),
                    None => Err(too_late()),
                },
            },
            None => answer.await,
        };
        self.unanswered = had_no_answer || matches!(&answer, Err(error) if !error.is_not_sent());
        match answer {
            // A grant that came after its own lease had lapsed is none. Still unsure: the next
            // attempt takes it over, or it is undone.
            Ok(AcquireOutcome::Acquired { .. }) if Instant::now() >= asked + validity(ttl) => {
                Err(Refusal::Unknown(lapsed(ttl)))
            }
            Ok(AcquireOutcome::Acquired { fencing, contended }) => {
                let by = if is_beside { By::QuestionBeside } else { By::Question };
                Ok(self.granted(fencing, asked, contended, by).await)
            }
            Ok(AcquireOutcome::Held { holder, queued }) => {
                self.unsure = was_unsure || queued.is_some();
                Err(Refusal::Held { holder, queued })
            }
            Err(error) => {
                self.unsure = was_unsure || !error.is_not_sent();
                Err(Refusal::Unknown(error))
            }
        }
    }

    /// Who has the lock, as this process knew when it asked: for a question without an answer that was asked
    /// so near the deadline that it got the least time only. Its silence is no outage.
    fn known_before(&self, asked: Instant, cut: Instant) -> Option<Option<Box<Holder>>> {
        if cut > asked + LEAST_TIME_TO_ANSWER {
            return None;
        }
        match self.ahead.as_ref()?.known()? {
            Known::Taken(holder) => Some(holder),
            Known::Ours(_) | Known::Together(..) | Known::Unanswered(_) => None,
        }
    }

    /// Waits for a grant, until `until` or until it is time to ask again.
    pub(super) async fn granted_before(&mut self, mut until: Instant) -> Option<LockGuard> {
        let Some(expected) = &self.expected else {
            sleep_until(until).await;
            return None;
        };
        let grant = loop {
            let sign = Instant::now() + SIGN_OF_LIFE;
            let news = tokio::select! {
                biased;
                news = expected.next() => news,
                () = sleep_until(until.min(sign)) => {
                    if until <= sign {
                        return None;
                    }
                    // Those behind see that this task is driven.
                    if let Some(ahead) = &self.ahead {
                        ahead.lives();
                    }
                    continue;
                }
            };
            match news {
                Notification::Granted(grant) => break grant,
                Notification::AskAgain(at) if at <= Instant::now() => return None,
                Notification::AskAgain(at) => until = until.min(at),
            }
        };
        let Grant { fencing, since, contended } = grant;
        // One that is too old is asked for again: that makes its lease begin anew. What nobody renews is the
        // deadline of the work, and has to last.
        let oldest = validity(self.terms.ttl) / if self.terms.renew { 2 } else { 10 };
        if Instant::now() >= since + oldest {
            return None;
        }
        Some(self.granted(fencing, since, contended, By::Message).await)
    }

    /// The lock is ours since `asked`.
    async fn granted(
        &mut self,
        fencing: FencingToken,
        asked: Instant,
        contended: bool,
        by: By,
    ) -> LockGuard {
        let terms = self.terms;
        let granted = Granted {
            claim: self.claim.clone(),
            fencing,
            asked,
            ttl: terms.ttl,
            renew: terms.renew,
            max_hold: terms.max_hold,
        };
        let mut ahead = self.ahead.take();
        let shares = self.queue.filter(|queue| !queue.hands_off);
        let stays = ahead.take_if(|_| shares.is_none());
        if shares.is_none() {
            let ours = Known::Ours(self.claim.clone());
            match (&stays, self.queue) {
                (Some(ahead), _) => ahead.granted(contended, ours, Instant::now()),
                // It asked for all, because the head is silent.
                (None, Some(queue)) => queue.learned(ours),
                (None, None) => {}
            }
        }
        let (guard, woken) =
            LockGuard::granted(granted, terms.hold_at_least, stays, &self.shared.core);
        if let Some(queue) = shares {
            if ahead.is_none() {
                queue.learned_for_all(Known::Ours(self.claim.clone()));
            }
            queue.shared_with_us(&self.claim, by);
            queue.was_granted();
        }
        // The next waiter of this process asks.
        drop(ahead);
        self.unsure = false;
        if !self.unanswered {
            self.claim.left_queue();
        }
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
            let lock = ReleaseRequest::new(self.claim.clone());
            self.shared.core.watchdog.undo(lock, self.terms.ttl);
        }
        self.shared.core.watchdog.has_asked();
    }
}

pub(super) fn too_late() -> StoreError {
    StoreError::new("it did not answer before the `wait` was over")
}

fn lapsed(ttl: Duration) -> StoreError {
    StoreError::new(format!(
        "its answer took longer than the whole lease: make `ttl` longer than {ttl:?}"
    ))
}
