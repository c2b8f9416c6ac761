//! Waiting inside the process: behind the caller that asks the store, until the lock is handed over, it
//! is this caller's turn to ask, or its wait budget ends.
//!
//! So each lock has one entry of this process in the store's wait queue, in every mode, and a crowd of
//! callers whose budgets end together asks the store nothing.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::LockManager;
use super::acquire::revive;
use super::asking::{LEAST_TIME_TO_ANSWER, too_late};
use super::known::Ahead;
use super::known::{Known, Lines};
use crate::key::{LockKey, named};
use crate::line::{Came, Joined, Place};
use crate::machine::random_fraction;
use crate::observe::Wait;
use crate::options::Terms;
use crate::retry::Attempts;
use crate::store::Sharing;
use crate::{Error, LockGuard};

/// The queue of this process in which a call waits.
pub(super) struct LocalQueue<'a> {
    name: Cow<'a, str>,
    lines: &'a Arc<Lines>,
    /// Whether a holder hands the lock to the next waiter: one key, held alone.
    pub(super) hands_off: bool,
    /// Whether several callers of this process may have the lock at once.
    pub(super) shares: bool,
    /// Whether any number of them may.
    pub(super) unlimited: bool,
}

/// What a caller may do when it has waited in a queue of its process.
pub(super) enum Turned {
    Granted(LockGuard),
    /// Ask the store, and wait in the store's queue.
    Ask(Ahead),
    /// Ask the store once, beside the asker; it comes back with this number.
    Beside(Option<u64>),
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
        let (handed, asked) = (self.shared.watchdog.lines(), &self.shared.askers);
        let unlimited = terms.sharing == Sharing::Shared;
        Some(match keys {
            [key] if terms.sharing == Sharing::Exclusive => {
                let (name, lines) = (key.name().into(), handed);
                LocalQueue { name, lines, hands_off: true, shares: false, unlimited }
            }
            [key] => {
                let (name, lines) = (key.name().into(), asked);
                LocalQueue { name, lines, hands_off: false, shares: true, unlimited }
            }
            keys => {
                // Nothing is handed over here, so that two calls whose keys read alike in one row would
                // only wait for each other's questions.
                let names: Vec<_> = keys.iter().map(LockKey::name).collect();
                let (name, lines) = (names.join("\n").into(), asked);
                LocalQueue { name, lines, hands_off: false, shares: false, unlimited }
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
            return Ok(Turned::Beside(None));
        }
        loop {
            let mut place = match self.lines.join(&self.name, terms.clone(), number) {
                Joined::Ahead(ahead, kept) => {
                    return Ok(match revive(terms, ahead, kept).await {
                        Ok(guard) => Turned::Granted(guard),
                        Err(ahead) => Turned::Ask(ahead),
                    });
                }
                Joined::Behind(place) => place,
            };
            let ends = attempts.line_ends(Instant::now(), random_fraction());
            observed.waits();
            let came = match timeout_at(ends, place.turn()).await {
                Ok(came) => came,
                Err(_) => last_word(&mut place, ends, &named(keys), attempts).await?,
            };
            match came {
                Came::Lock(guard) if guard.ensure_held().is_ok() => {
                    return Ok(Turned::Granted(guard));
                }
                // It lay too long before this task was polled.
                Came::Lock(lapsed) => drop(lapsed),
                Came::Ask(ahead) if attempts.can_wait(Instant::now()) => {
                    return Ok(Turned::Ask(ahead));
                }
                // The asker gave up as this caller does: what it learned is all there is to say.
                Came::Ask(ahead) => match ahead.known() {
                    Some(known) => return Err(known.error(&named(keys), attempts)),
                    None => return Ok(Turned::Ask(ahead)),
                },
                Came::Scout(number) => return Ok(Turned::Beside(Some(number))),
            }
        }
    }

    /// A caller of this process has the lock since now, and others may share it.
    pub(super) fn shared_with_us(&self) {
        if self.unlimited {
            // Each that gets in sends two more, so that a crowd is in after a few round trips, and a
            // refusal costs no more than two questions.
            self.lines.send_scouts(&self.name, 2);
        }
    }
}

/// What a waiter hears whose wait budget has ended: what the asker learned last, or what it learns within
/// the time that any question gets.
async fn last_word(
    place: &mut Place<Terms, LockGuard, Known>,
    ends: Instant,
    key: &str,
    attempts: &Attempts,
) -> Result<Came<Terms, LockGuard, Known>, Error> {
    let grace = ends + LEAST_TIME_TO_ANSWER;
    loop {
        let changed = match place.known() {
            Ok(known) => return Err(known.error(key, attempts)),
            Err(changed) => changed,
        };
        tokio::select! {
            biased;
            came = place.turn() => return Ok(came),
            _ = changed => {}
            () = sleep_until(grace) => return Err(too_late().about(key)),
        }
    }
}
