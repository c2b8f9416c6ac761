//! One acquisition: enter again, or ask the store until it grants or patience ends.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::LockManager;
use crate::chain::{self, Frame};
use crate::hold::{Granted, validity};
use crate::key::LockKey;
use crate::options::Terms;
use crate::retry::Attempts;
use crate::store::{Acquire, Claim, StoreError};
use crate::watchdog::Watchdog;
use crate::{Error, Holder, LockGuard};

/// What an attempt near the deadline gets at least, or no answer could ever meet it.
const LEAST_TIME_TO_ANSWER: Duration = Duration::from_millis(250);

impl LockManager {
    pub(crate) async fn acquire_on(&self, terms: &Terms, key: LockKey) -> Result<LockGuard, Error> {
        let watchdog = &self.shared.watchdog;
        // First of all, also for what an earlier runtime left behind: it may be this very key's
        // release.
        watchdog.start()?;
        if let Some(outer) = chain::find(watchdog, key.name()) {
            if watchdog.is_shut_down() {
                return Err(shut_down(&key));
            }
            return enter_again(terms, &outer).await;
        }
        let label = self.shared.identity.label(terms.function);
        let claim = Arc::new(Claim::new(key, &label));
        tokio::select! {
            biased;
            outcome = self.ask_until_granted(terms, claim.clone()) => outcome,
            () = watchdog.stopped() => Err(shut_down(claim.key())),
        }
    }

    async fn ask_until_granted(
        &self,
        terms: &Terms,
        claim: Arc<Claim>,
    ) -> Result<LockGuard, Error> {
        let watchdog = &self.shared.watchdog;
        let mut attempts = terms.patience.start(Instant::now());
        watchdog.asks();
        let mut asking = Asking { watchdog, claim, ttl: terms.ttl, unsure: false };
        // After it is noted, so that a shutdown either is seen here or sees this.
        if watchdog.is_shut_down() {
            return Err(shut_down(asking.claim.key()));
        }
        loop {
            attempts.begin();
            let outcome = asking.ask(terms, &attempts).await;
            let key = asking.claim.key();
            let refusal = match outcome {
                // Lost already if the manager was shut down meanwhile; dropped, it is given back.
                Ok(guard) if guard.is_shut_down() => return Err(shut_down(key)),
                Ok(guard) => return Ok(guard),
                Err(refusal) => refusal,
            };
            let pause = attempts.pause(Instant::now(), rand::random());
            let Some(until) = pause else {
                return Err(match refusal {
                    Refusal::Held(holder) => contended(key, &attempts, holder),
                    Refusal::Unknown(error) => error.about(key.as_str()),
                });
            };
            sleep_until(until).await;
        }
    }
}

/// Waits for this call's turn inside a hold of its own chain.
async fn enter_again(terms: &Terms, outer: &Arc<Frame>) -> Result<LockGuard, Error> {
    let key = outer.hold.claim().key();
    if !terms.reentrant {
        return Err(Error::Reentered { key: key.to_string() });
    }
    outer.hold.ensure_held(Instant::now())?;
    if let Some(turn) = outer.try_turn() {
        return Ok(LockGuard::reentered(turn));
    }
    // In line from here on, so that the turns are taken in the order of the calls.
    let mut turn = pin!(outer.turn());
    let mut ended = pin!(outer.hold.clone().ended());
    let mut attempts = terms.patience.start(Instant::now());
    loop {
        attempts.begin();
        let Some(until) = attempts.pause(Instant::now(), rand::random()) else {
            return Err(contended(key, &attempts, own_label(outer)));
        };
        tokio::select! {
            biased;
            reason = ended.as_mut() => return Err(outer.hold.lost(reason)),
            turn = turn.as_mut() => return Ok(LockGuard::reentered(turn)),
            () = sleep_until(until) => {}
        }
    }
}

/// The label of a hold of this process, for those who wait for it inside the chain.
fn own_label(frame: &Frame) -> Option<Box<Holder>> {
    let remaining = frame.hold.valid_until().saturating_duration_since(Instant::now());
    Some(Box::new(Holder::from_value(frame.hold.claim().value(), Some(remaining))))
}

/// Why an attempt did not get the lock.
enum Refusal {
    Held(Option<Box<Holder>>),
    Unknown(StoreError),
}

/// A claim on its way: whatever the store may have granted without our knowing is given back when
/// this is dropped, at whichever await point.
struct Asking<'a> {
    watchdog: &'a Arc<Watchdog>,
    claim: Arc<Claim>,
    ttl: Duration,
    /// Whether an attempt is under way or got no answer. Sticky: a request that nobody answered
    /// may still arrive after a later one was refused.
    unsure: bool,
}

impl Asking<'_> {
    async fn ask(&mut self, terms: &Terms, attempts: &Attempts) -> Result<LockGuard, Refusal> {
        let was_unsure = std::mem::replace(&mut self.unsure, true);
        let asked = Instant::now();
        let answer = self.watchdog.store().acquire(&self.claim, terms.ttl);
        let answer = match attempts.cut(asked, LEAST_TIME_TO_ANSWER) {
            Some(cut) => timeout_at(cut, answer).await.unwrap_or_else(|_| Err(too_late())),
            None => answer.await,
        };
        match answer {
            // A grant that came after its own lease had lapsed is none. Still unsure: the next
            // attempt takes it over, or it is undone.
            Ok(Acquire::Acquired { .. }) if Instant::now() >= asked + validity(terms.ttl) => {
                Err(Refusal::Unknown(lapsed(terms)))
            }
            Ok(Acquire::Acquired { fencing }) => {
                let granted = Granted {
                    claim: self.claim.clone(),
                    fencing,
                    asked,
                    ttl: terms.ttl,
                    renew: terms.renew,
                    max_hold: terms.max_hold,
                };
                let (guard, woken) = LockGuard::granted(granted, self.watchdog);
                self.unsure = false;
                if woken {
                    // What a task wakes is next on its own thread, and no other thread takes it from
                    // there: a body that computes from its first line would keep the watchdog.
                    yield_now().await;
                }
                Ok(guard)
            }
            Ok(Acquire::Held { holder }) => {
                self.unsure = was_unsure;
                Err(Refusal::Held(holder))
            }
            Err(error) => {
                self.unsure = was_unsure || !error.is_not_sent();
                Err(Refusal::Unknown(error))
            }
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if self.unsure {
            let until = Instant::now() + self.ttl;
            self.watchdog.release_later(self.claim.clone(), until, false);
        }
        self.watchdog.has_asked();
    }
}

fn shut_down(key: &LockKey) -> Error {
    Error::ShutDown { key: key.to_string() }
}

fn contended(key: &LockKey, attempts: &Attempts, holder: Option<Box<Holder>>) -> Error {
    Error::Contended {
        key: key.to_string(),
        attempts: attempts.made(),
        waited: attempts.waited(Instant::now()),
        holder,
    }
}

fn too_late() -> StoreError {
    StoreError::new("it did not answer before the `wait` was over")
}

fn lapsed(terms: &Terms) -> StoreError {
    StoreError::new(format!(
        "its answer took longer than the whole lease: make `ttl` longer than {:?}",
        terms.ttl
    ))
}
