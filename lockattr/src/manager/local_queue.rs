//! Waiting inside the process: behind the caller that asks the store, until the lock is handed over, it
//! is this caller's turn to ask, or its wait budget ends.
//!
//! So callers that ask for the same keys in the same way have one entry in the store's wait queue between
//! them, and a crowd whose budgets end together asks the store nothing.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::LockManager;
use super::acquire::revive;
use super::asking::{By, LEAST_TIME_TO_ANSWER, too_late};
use super::turn::turn_of;
use crate::hold::known::{Ahead, Known, Lines};
use crate::lock::key::{LockKey, named};
use crate::lock::options::Terms;
use crate::lock::retry::Attempts;
use crate::observe::Wait;
use crate::platform::entropy::random_fraction;
use crate::queue::{Came, Joined};
use crate::store::{Claim, Sharing};
use crate::watchdog::Watchdog;
use crate::{Error, LockGuard};

/// The queue of this process in which a call waits.
pub(super) struct LocalQueue<'a> {
    name: Cow<'a, str>,
    lines: &'a Arc<Lines>,
    watchdog: &'a Watchdog,
    /// Whether who is granted the lock hands it to the next waiter: one key, held alone.
    pub(super) hands_off: bool,
    /// Whether several callers of this process may have the lock at once.
    pub(super) shares: bool,
    /// So many more try at once for each that gets in.
    scouts: usize,
}

/// What a caller may do when it has waited in a queue of its process.
pub(super) enum Turned {
    Granted(LockGuard),
    /// Ask the store, and wait in the store's queue; in the place of this claim, if that has the lock.
    Ask(Ahead, Option<Arc<Claim>>),
    /// Ask the store once, beside the asker; it comes back with this number.
    Beside(Option<u64>, Option<Arc<Claim>>),
    /// The same for all who wait here, because the asker is silent.
    ForAll(u64, AsksForAll),
}

/// The place of a caller that waits in it.
type Place = crate::queue::Place<Terms, LockGuard, Known>;

/// What a waiter hears whose wait budget has ended.
enum LastWord {
    Came(Came<Terms, LockGuard, Known>),
    /// It asks for all.
    Asks(AsksForAll),
}

/// A waiter asks the store for all of its queue. If it goes without an answer, another may ask.
pub(super) struct AsksForAll {
    lines: Arc<Lines>,
    name: Box<str>,
}

/// A caller that waits. If a writer gives up, readers here or elsewhere may share the lock with those inside.
struct Leaves<'a> {
    queue: &'a LocalQueue<'a>,
    terms: &'a Terms,
    gives_up: bool,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if self.gives_up && self.terms.sharing == Sharing::Exclusive {
            let queue = self.queue;
            if let Some(readers) = queue.lines.knows(&queue.name, Known::readers).flatten() {
                readers.look(Instant::now());
            }
        }
    }
}

impl Drop for AsksForAll {
    fn drop(&mut self) {
        self.lines.asks_no_more(&self.name);
    }
}

impl LockManager {
    /// The queue of this process for `keys`; none for a call that always asks by itself.
    pub(super) fn queue_for<'a>(
        &'a self,
        terms: &Terms,
        keys: &'a [LockKey],
    ) -> Option<LocalQueue<'a>> {
        if terms.by_store {
            return None;
        }
        let core = &self.shared.core;
        let watchdog = &*core.watchdog;
        let (handed, asked) = (core.lines(), core.askers());
        let scouts = match terms.sharing {
            Sharing::Exclusive | Sharing::Permits(1) => 0,
            Sharing::Permits(_) => 1,
            // Each that gets in sends two more, so that a crowd is in after a few round trips, and a
            // refusal costs no more than two questions.
            Sharing::Shared => 2,
        };
        let store = watchdog.store();
        Some(match keys {
            [key] if terms.sharing == Sharing::Exclusive => {
                let (name, lines) = (key.name().into(), handed);
                LocalQueue { name, lines, watchdog, hands_off: true, shares: false, scouts }
            }
            [_] if !store.supports_companions() => return None,
            [key] => {
                // Readers wait in the writers' queue if a writer can let them in.
                let is_let_in = terms.sharing == Sharing::Shared && store.supports_downgrade();
                let (name, lines) = (key.name().into(), if is_let_in { handed } else { asked });
                LocalQueue { name, lines, watchdog, hands_off: false, shares: true, scouts }
            }
            keys => {
                // Nothing is handed over here, so that two calls whose keys read alike in one row would
                // only wait for each other's questions.
                let names: Vec<_> = keys.iter().map(LockKey::name).collect();
                let (name, lines) = (names.join("\n").into(), &self.shared.several);
                LocalQueue { name, lines, watchdog, hands_off: false, shares: false, scouts }
            }
        })
    }
}

impl LocalQueue<'_> {
    /// Joins the queue and waits there. `number` is what a caller had here that asked beside the asker.
    pub(super) async fn wait(
        &self,
        terms: &Terms,
        keys: &[LockKey],
        asked_beside: bool,
        number: Option<u64>,
        attempts: &mut Attempts,
        observed: &Wait,
    ) -> Result<Turned, Error> {
        if self.shares && !asked_beside && self.lines.may_ask_beside(&self.name) {
            return Ok(Turned::Beside(None, None));
        }
        loop {
            let mut leaves = Leaves { queue: self, terms, gives_up: true };
            let mut place = match self.lines.join(&self.name, terms.clone(), number) {
                Joined::Ahead(ahead, kept) => {
                    return Ok(match revive(terms, ahead, kept).await {
                        Ok(guard) => Turned::Granted(guard),
                        Err(ahead) => Turned::Ask(ahead, None),
                    });
                }
                Joined::Behind(place) => place,
            };
            let ends = attempts.line_ends(Instant::now(), random_fraction());
            observed.waits();
            let lost = |known: &Known| known.claim().is_some_and(|claim| self.has_lost(claim));
            let came = timeout_at(ends, turn_of(self.lines, &self.name, &mut place, lost)).await;
            let came = match came {
                Ok(came) => came,
                Err(_) => match self.last_word(&mut place, ends, &named(keys), attempts).await? {
                    LastWord::Came(came) => came,
                    LastWord::Asks(asks) => return Ok(Turned::ForAll(place.number(), asks)),
                },
            };
            leaves.gives_up = false;
            match came {
                Came::Lock(guard) if guard.ensure_held().is_ok() => {
                    return Ok(Turned::Granted(guard));
                }
                // It lay too long before this task was polled.
                Came::Lock(lapsed) => drop(lapsed),
                Came::Ask(ahead) if attempts.can_wait(Instant::now()) => {
                    return Ok(Turned::Ask(ahead, self.companion(place.number())));
                }
                // The asker gave up as this caller does: what it learned is all there is to say.
                Came::Ask(ahead) => match ahead.known() {
                    Some(known) => return Err(known.error(&named(keys), attempts)),
                    None => return Ok(Turned::Ask(ahead, None)),
                },
                Came::Scout(number, with) => {
                    return Ok(Turned::Beside(Some(number), with.and_then(companion)));
                }
            }
        }
    }

    /// What a waiter does whose wait budget has ended: it reports what the asker learned last, or learns
    /// within the time that any question gets. If the asker is silent, one of the waiters asks for all.
    async fn last_word(
        &self,
        place: &mut Place,
        ends: Instant,
        key: &str,
        attempts: &Attempts,
    ) -> Result<LastWord, Error> {
        let mut grace = ends + LEAST_TIME_TO_ANSWER;
        let mut another_asks = false;
        loop {
            let changed = match place.known() {
                Ok(known) => return Err(known.error(key, attempts)),
                Err(changed) => changed,
            };
            tokio::select! {
                biased;
                came = place.turn() => return Ok(LastWord::Came(came)),
                // Something is known; or whoever asked for all is gone.
                _ = changed => {
                    if std::mem::take(&mut another_asks) {
                        grace = Instant::now();
                    }
                }
                () = sleep_until(grace) => {
                    if self.lines.may_ask_for_all(&self.name) {
                        let (lines, name) = (self.lines.clone(), (&*self.name).into());
                        return Ok(LastWord::Asks(AsksForAll { lines, name }));
                    }
                    if std::mem::replace(&mut another_asks, true) {
                        return Err(too_late().about(key));
                    }
                    // Its question gets as long as any.
                    grace += LEAST_TIME_TO_ANSWER + LEAST_TIME_TO_ANSWER / 5;
                }
            }
        }
    }

    /// Tells the waiters what a caller learned that asked beside a silent asker.
    pub(super) fn learned(&self, known: Known) {
        self.lines.learned(&self.name, known);
    }

    /// Tells the waiters that a caller which asked for them has the lock.
    pub(super) fn learned_for_all(&self, known: Known) {
        self.lines.learned_for_all(&self.name, known);
    }

    /// A claim of this process was granted a lock that others may share. Unless it asked beside another, the
    /// callers that wait now share its place in the store's queue.
    pub(super) fn shared_with_us(&self, claim: &Arc<Claim>, by: By) {
        if self.shares && by != By::QuestionBeside {
            self.lines.share(&self.name, Known::Ours(claim.clone()));
        }
        // A permit that comes by a message was the only one: any other would have gone to the next in the queue.
        let was_the_last = by == By::Message && claim.sharing() != Sharing::Shared;
        if self.scouts > 0 && !was_the_last {
            let can_share = |terms: &Terms| terms.sharing != Sharing::Exclusive;
            self.lines.send_scouts(&self.name, self.scouts, can_share);
        }
    }

    /// The store granted a caller of this queue the lock.
    pub(super) fn was_granted(&self) {
        self.lines.was_granted(&self.name);
    }

    /// The claim in whose place the waiter of this number asks.
    fn companion(&self, number: u64) -> Option<Arc<Claim>> {
        let known = self.lines.companion(&self.name, number).filter(|_| self.shares);
        known.and_then(companion)
    }

    fn has_lost(&self, claim: &Claim) -> bool {
        self.watchdog.has_lost(claim.token())
    }
}

/// The claim that holds the lock in this process.
fn companion(known: Known) -> Option<Arc<Claim>> {
    match known {
        Known::Ours(claim) => Some(claim),
        _ => None,
    }
}
