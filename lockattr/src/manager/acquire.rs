//! One acquisition: enter again, or stand in line until the lock is handed over or patience ends.

use std::pin::pin;
use std::sync::Arc;

use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::LockManager;
use super::asking::{Asking, Refusal};
use crate::chain::{self, Frame};
use crate::guard::Ahead;
use crate::key::{LockKey, in_one_order, named};
use crate::line::{Came, Joined};
use crate::options::Terms;
use crate::retry::Attempts;
use crate::store::{Claim, Sharing};
use crate::{Error, Holder, LockGuard, LostReason};

impl LockManager {
    pub(crate) async fn acquire_on(&self, terms: &Terms, key: &str) -> Result<LockGuard, Error> {
        // What needs no store is ready at once, and a loop of it must let others run too.
        consume_budget().await;
        // Before anything is made for it: a call that enters again costs next to nothing.
        if let Some(outer) = chain::find(&self.shared.watchdog, key) {
            return enter_again(terms, &outer, key).await;
        }
        self.acquire_new(terms, Box::new([self.key(key)?])).await
    }

    /// All of `keys` or none: those that this call chain has already are entered again.
    pub(crate) async fn acquire_all_on(
        &self,
        terms: &Terms,
        keys: Vec<LockKey>,
    ) -> Result<LockGuard, Error> {
        let (mut also, mut entered) = (Vec::new(), Vec::<Arc<Frame>>::new());
        let mut rest = Vec::new();
        for key in in_one_order(keys) {
            let Some(outer) = chain::find(&self.shared.watchdog, key.as_str()) else {
                rest.push(key);
                continue;
            };
            // One entry may hold several of them, and has one gate.
            if !entered.iter().any(|frame| Arc::ptr_eq(frame, &outer)) {
                also.push(enter_again(terms, &outer, key.as_str()).await?);
                entered.push(outer);
            }
        }
        if !rest.is_empty() {
            return Ok(self.acquire_new(terms, rest.into()).await?.and(also));
        }
        match also.pop() {
            Some(innermost) => Ok(innermost.and(also)),
            None => Err(Error::InvalidKey("no key is given: name what to lock".into())),
        }
    }

    async fn acquire_new(&self, terms: &Terms, keys: Box<[LockKey]>) -> Result<LockGuard, Error> {
        let watchdog = &self.shared.watchdog;
        // First of all, also for what an earlier runtime left behind: it may be this very key's
        // release.
        watchdog.start()?;
        let mut ahead = None;
        if let Some(name) = local_line(terms, &keys) {
            // Before anything else is made: a lock that is kept costs next to nothing.
            if let Some((place, kept)) = watchdog.lines().try_join(name) {
                match revive(terms, place, kept).await {
                    Ok(guard) => return Ok(guard),
                    Err(place) => ahead = Some(place),
                }
            }
        }
        let wait = self.wait_and_ask(terms, &keys, ahead);
        tokio::select! {
            biased;
            outcome = wait => outcome,
            () = watchdog.stopped() => Err(shut_down(&named(&keys))),
        }
    }

    async fn wait_and_ask(
        &self,
        terms: &Terms,
        keys: &[LockKey],
        mut ahead: Option<Ahead>,
    ) -> Result<LockGuard, Error> {
        let shared = &self.shared;
        let mut attempts = terms.patience.start(Instant::now());
        match local_line(terms, keys) {
            Some(name) if ahead.is_none() => {
                match self.stand_in_line(terms, name, &mut attempts).await {
                    Ok(guard) => return Ok(guard),
                    Err(place) => ahead = place,
                }
            }
            Some(_) => {}
            None => self.give_up_kept(keys).await,
        }
        let label = shared.identity.label(terms.function);
        let claim = Claim::with(shared.inbox.id(), keys.into(), terms.sharing, &label);
        let mut asking = Asking::new(shared, claim, terms, ahead);
        // After it is noted that we ask, so that a shutdown either is seen here or sees this.
        if shared.watchdog.is_shut_down() {
            return Err(shut_down(&named(keys)));
        }
        loop {
            attempts.begin();
            let refusal = match asking.ask(&attempts).await {
                // Lost already if the manager was shut down meanwhile; dropped, it is given back.
                Ok(guard) if guard.is_shut_down() => return Err(shut_down(&named(keys))),
                Ok(guard) => return Ok(guard),
                Err(refusal) => refusal,
            };
            let (now, random) = (Instant::now(), rand::random());
            let again = match &refusal {
                Refusal::Held { in_line: Some(soon), .. } => {
                    attempts.look_again(now, *soon, random)
                }
                _ => attempts.pause(now, random),
            };
            let Some(until) = again else {
                return Err(match refusal {
                    Refusal::Held { holder, .. } => contended(&named(keys), &attempts, holder),
                    Refusal::Unknown(error) => error.about(&named(keys)),
                });
            };
            if let Some(guard) = asking.granted_before(until).await {
                return Ok(guard);
            }
        }
    }

    /// Waits among those of this process until the lock is handed over here, or until it is our
    /// turn to ask the store. Whose patience ends before asks as well, once and from no place.
    async fn stand_in_line(
        &self,
        terms: &Terms,
        name: &str,
        attempts: &mut Attempts,
    ) -> Result<LockGuard, Option<Ahead>> {
        if attempts.is_once() {
            return Err(None);
        }
        let mut place = match self.shared.watchdog.lines().join(name, terms.clone()) {
            Joined::Ahead(ahead, kept) => {
                return revive(terms, ahead, kept).await.map_err(Some);
            }
            Joined::Behind(place) => place,
        };
        let ends = attempts.line_ends(Instant::now(), rand::random());
        match timeout_at(ends, place.turn()).await {
            Ok(Came::Lock(guard)) if guard.ensure_held().is_ok() => Ok(guard),
            // It lay too long before this task was polled.
            Ok(Came::Lock(_lapsed)) => Err(None),
            Ok(Came::Ask(ahead)) => Err(Some(ahead)),
            Err(_) => Err(None),
        }
    }

    /// Gives back what is kept in this process of the locks that are about to be asked for.
    async fn give_up_kept(&self, keys: &[LockKey]) {
        for key in keys {
            for kept in self.shared.watchdog.lines().take_kept(Some(key.name())) {
                // If it was lost meanwhile, nobody held it who would have to know.
                kept.release_in_background().await.ok();
            }
        }
    }
}

/// Takes the lock that was kept for the place in front, if there is one and it fits.
async fn revive(terms: &Terms, ahead: Ahead, kept: Option<LockGuard>) -> Result<LockGuard, Ahead> {
    match kept {
        Some(kept) => kept.revive(terms, ahead).await,
        None => Err(ahead),
    }
}

/// The name of the lock, if its line in this process hands it on: one key, for one holder.
fn local_line<'a>(terms: &Terms, keys: &'a [LockKey]) -> Option<&'a str> {
    match keys {
        [key] if terms.sharing == Sharing::Exclusive => Some(key.name()),
        _ => None,
    }
}

/// Waits for this call's turn inside a hold of its own chain.
async fn enter_again(terms: &Terms, outer: &Arc<Frame>, key: &str) -> Result<LockGuard, Error> {
    let held = outer.hold.check(Instant::now());
    if held == Err(LostReason::ShutDown) {
        return Err(shut_down(key));
    }
    if !terms.reentrant {
        return Err(Error::Reentered { key: key.to_owned() });
    }
    check_sharing(terms.sharing, outer.sharing, key)?;
    held.map_err(|reason| outer.hold.lost(reason))?;
    if let Some(turn) = outer.try_turn(terms.sharing) {
        return Ok(LockGuard::reentered(turn));
    }
    let mut attempts = terms.patience.start(Instant::now());
    attempts.begin();
    // In line from here on, so that the turns are taken in the order of the calls.
    let turn = pin!(outer.turn(terms.sharing));
    let ended = pin!(outer.hold.clone().ended());
    let ends = attempts.line_ends(Instant::now(), rand::random());
    tokio::select! {
        biased;
        reason = ended => Err(outer.hold.lost(reason)),
        turn = turn => Ok(LockGuard::reentered(turn)),
        () = sleep_until(ends) => Err(contended(key, &attempts, own_label(outer))),
    }
}

/// Refuses what could never be granted: who is inside waits for nobody to be inside.
fn check_sharing(inner: Sharing, outer: Sharing, key: &str) -> Result<(), Error> {
    let (inner, outer) = match (inner, outer) {
        (_, Sharing::Exclusive)
        | (Sharing::Shared, Sharing::Shared)
        | (Sharing::Permits(_), Sharing::Permits(_)) => return Ok(()),
        (inner, outer) => (described(inner), described(outer)),
    };
    Err(Error::InvalidOptions(format!(
        "this call chain holds `{key}` {outer}, and inside of that it can never be had {inner}: \
         take it {inner} where the chain begins"
    )))
}

fn described(sharing: Sharing) -> &'static str {
    match sharing {
        Sharing::Exclusive => "with `mode = exclusive`",
        Sharing::Shared => "with `mode = shared`",
        Sharing::Permits(_) => "with `permits`",
    }
}

/// The label of a hold of this process, for those who wait for it inside the chain.
fn own_label(frame: &Frame) -> Option<Box<Holder>> {
    let remaining = frame.hold.valid_until().saturating_duration_since(Instant::now());
    Some(Box::new(Holder::from_value(frame.hold.claim().value(), Some(remaining))))
}

fn shut_down(key: &str) -> Error {
    Error::ShutDown { key: key.to_owned() }
}

fn contended(key: &str, attempts: &Attempts, holder: Option<Box<Holder>>) -> Error {
    let now = Instant::now();
    Error::Contended {
        key: key.to_owned(),
        attempts: attempts.made(now),
        waited: attempts.waited(now),
        holder,
    }
}
