//! A claim on its way to the store and back, and what has to be undone if its caller gives up.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Shared;
use super::local_queue::LocalQueue;
use crate::hold::last_known::{Head, LastKnown};
use crate::lease::{GrantedLease, validity};
use crate::lock::options::ResolvedOptions;
use crate::lock::retry::Attempts;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, Grant, Notification, ReleaseRequest, StoreError,
    Subscription, Waiting,
};
use crate::{FencingToken, Holder, LockGuard};

/// What an attempt near the deadline gets at least, or no answer could ever meet it.
pub(super) const MIN_RESPONSE_TIME: Duration = Duration::from_millis(250);

/// How often the head of a queue shows that it lives while it waits.
const SHOW_LIFE_EVERY: Duration = Duration::from_secs(2);

/// So many waiting claims of one manager look every `retry_delay`; of twice as many, each looks half as
/// often.
const FULL_RATE_WAITERS: u32 = 32;

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

    fn known(&self) -> LastKnown {
        match self {
            Self::Held { holder, .. } => LastKnown::HeldElsewhere(holder.clone()),
            Self::Unknown(error) => LastKnown::Unanswered(error.clone()),
        }
    }
}

/// By what the store granted a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantedBy {
    Request,
    /// While another claim of this process had it too, in whose place this one asked.
    CompanionRequest,
    /// The claim stood in the store's queue, and its turn came.
    Notification,
}

/// A claim on its way: whatever the store may have granted without our knowing, and its place in
/// the line, is given back when this is dropped, at whichever await point.
pub(super) struct PendingAcquire<'a> {
    shared: &'a Shared,
    options: &'a ResolvedOptions,
    claim: Arc<Claim>,
    /// The head of the queue of this process, where there is one and this claim does not ask beside it.
    head: Option<Head>,
    /// That queue.
    queue: Option<&'a LocalQueue<'a>>,
    /// The claim of this process whose place it shares.
    beside: Option<Arc<Claim>>,
    /// What the store tells, once the claim may stand in its line.
    subscription: Option<Subscription>,
    /// Whether an attempt is under way or got no answer, or the claim stands in line. Sticky: a
    /// request that nobody answered may still arrive after a later one was refused.
    must_undo: bool,
    /// Whether a question got no answer: it may still arrive, and queue the claim that was granted its lock
    /// meanwhile.
    unanswered: bool,
}

impl<'a> PendingAcquire<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        claim: Claim,
        options: &'a ResolvedOptions,
        head: Option<Head>,
        queue: Option<&'a LocalQueue<'a>>,
    ) -> Self {
        shared.core.watchdog.begin_acquire();
        Self {
            beside: None,
            shared,
            options,
            claim: Arc::new(claim),
            head,
            queue,
            subscription: None,
            must_undo: false,
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
    pub(super) async fn probe(&mut self, attempts: &Attempts, for_all: bool) -> Option<LockGuard> {
        let (request, now) = (self.request(), Instant::now());
        let cut = attempts.response_deadline(now, MIN_RESPONSE_TIME);
        let cut = cut.or(for_all.then(|| now + MIN_RESPONSE_TIME));
        match self.ask_for(request, cut).await {
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
        let mut request = self.request();
        let asked = Instant::now();
        if attempts.can_wait(asked) {
            let token = self.claim.token();
            self.subscription.get_or_insert_with(|| self.shared.subscriber.subscribe(token));
            request = request.waiting(Waiting::Queued).recheck_every(self.recheck_every());
        }
        let refused =
            self.ask_for(request, attempts.response_deadline(asked, MIN_RESPONSE_TIME)).await;
        if let (Err(refusal), Some(head)) = (&refused, &self.head) {
            head.learned(refusal.known());
        }
        refused
    }

    /// What each of its questions asks for.
    fn request(&self) -> AcquireRequest {
        AcquireRequest::new(self.claim.clone(), self.options.ttl).companion(self.beside.clone())
    }

    /// How often to look while it waits: each `retry_delay`, and less often where this manager waits for
    /// so many locks that the looks alone would keep the store busy.
    fn recheck_every(&self) -> Duration {
        let waits = u32::try_from(self.shared.subscriber.waiting()).unwrap_or(u32::MAX);
        self.options.wait_budget.delay.saturating_mul(waits.div_ceil(FULL_RATE_WAITERS).max(1))
    }

    /// Asks the store, until `cut`.
    async fn ask_for(
        &mut self,
        request: AcquireRequest,
        cut: Option<Instant>,
    ) -> Result<LockGuard, Refusal> {
        let had_to_undo = std::mem::replace(&mut self.must_undo, true);
        let had_no_answer = std::mem::replace(&mut self.unanswered, true);
        let (ttl, asked) = (self.options.ttl, Instant::now());
        let store = self.shared.core.store();
        // A release that is sent later is executed later.
        let beside = self.beside.as_ref();
        let is_beside = beside.is_some_and(|it| self.shared.core.watchdog.holds(it.token()));
        let answer = store.acquire(&request);
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
                let by = if is_beside { GrantedBy::CompanionRequest } else { GrantedBy::Request };
                Ok(self.granted(fencing, asked, contended, by).await)
            }
            Ok(AcquireOutcome::Held { holder, queued }) => {
                self.must_undo = had_to_undo || queued.is_some();
                Err(Refusal::Held { holder, queued })
            }
            Err(error) => {
                self.must_undo = had_to_undo || !error.is_not_sent();
                Err(Refusal::Unknown(error))
            }
        }
    }

    /// Who has the lock, as this process knew when it asked: for a question without an answer that was asked
    /// so near the deadline that it got the least time only. Its silence is no outage.
    fn known_before(&self, asked: Instant, cut: Instant) -> Option<Option<Box<Holder>>> {
        if cut > asked + MIN_RESPONSE_TIME {
            return None;
        }
        match self.head.as_ref()?.known()? {
            LastKnown::HeldElsewhere(holder) => Some(holder),
            LastKnown::Ours(_) | LastKnown::Readers(..) | LastKnown::Unanswered(_) => None,
        }
    }

    /// Waits for a grant, until `until` or until it is time to ask again.
    pub(super) async fn granted_before(&mut self, mut until: Instant) -> Option<LockGuard> {
        let Some(subscription) = &self.subscription else {
            sleep_until(until).await;
            return None;
        };
        let grant = loop {
            let sign = Instant::now() + SHOW_LIFE_EVERY;
            let news = tokio::select! {
                biased;
                news = subscription.next() => news,
                () = sleep_until(until.min(sign)) => {
                    if until <= sign {
                        return None;
                    }
                    // Those behind see that this task is driven.
                    if let Some(head) = &self.head {
                        head.lives();
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
        let oldest = validity(self.options.ttl) / if self.options.renew { 2 } else { 10 };
        if Instant::now() >= since + oldest {
            return None;
        }
        Some(self.granted(fencing, since, contended, GrantedBy::Notification).await)
    }

    /// The lock is ours since `asked`.
    async fn granted(
        &mut self,
        fencing: FencingToken,
        asked: Instant,
        contended: bool,
        by: GrantedBy,
    ) -> LockGuard {
        let options = self.options;
        let granted = GrantedLease {
            claim: self.claim.clone(),
            fencing,
            asked,
            ttl: options.ttl,
            renew: options.renew,
            max_hold: options.max_hold,
        };
        let mut head = self.head.take();
        let shares = self.queue.filter(|queue| !queue.hands_off);
        let stays = head.take_if(|_| shares.is_none());
        if shares.is_none() {
            let ours = LastKnown::Ours(self.claim.clone());
            match (&stays, self.queue) {
                (Some(head), _) => head.granted(contended, ours, Instant::now()),
                // It asked for all, because the head is silent.
                (None, Some(queue)) => queue.learned(ours),
                (None, None) => {}
            }
        }
        let (guard, woken) =
            LockGuard::granted(granted, options.hold_at_least, stays, &self.shared.core);
        if let Some(queue) = shares {
            if head.is_none() {
                queue.learned_for_all(LastKnown::Ours(self.claim.clone()));
            }
            queue.shared_with_us(&self.claim, by);
            queue.was_granted();
        }
        // The next waiter of this process asks.
        drop(head);
        self.must_undo = false;
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

impl Drop for PendingAcquire<'_> {
    fn drop(&mut self) {
        if self.must_undo {
            let lock = ReleaseRequest::new(self.claim.clone());
            self.shared.core.watchdog.undo(lock, self.options.ttl);
        }
        self.shared.core.watchdog.end_acquire();
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
