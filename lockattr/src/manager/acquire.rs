//! One acquisition: enter again (`reenter.rs`), or stand in line until the lock is handed over or
//! patience ends.

use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, timeout_at};

use super::LockManager;
use super::asking::{Asking, Refusal};
use crate::chain;
use crate::guard::Ahead;
use crate::key::{LockKey, named};
use crate::line::{Came, Joined};
use crate::machine::random_fraction;
use crate::observe::Wait;
use crate::options::Terms;
use crate::retry::Attempts;
use crate::site::Site;
use crate::store::{Claim, Sharing};
use crate::{Error, Holder, LockGuard};

impl LockManager {
    pub(crate) async fn acquire_on(&self, terms: &Terms, key: &str) -> Result<LockGuard, Error> {
        // What needs no store is ready at once, and a loop of it must let others run too.
        consume_budget().await;
        // Before anything is made for it: a call that enters again costs next to nothing.
        if let Some(outer) = chain::find(&self.shared.watchdog, key) {
            return self.enter_again(terms, &outer, key).await;
        }
        self.acquire_new(terms, Box::new([self.key(key)?])).await
    }

    /// All of `keys` or none: those that this call chain has already are entered again.
    pub(crate) async fn acquire_all_on(
        &self,
        terms: &Terms,
        keys: Vec<LockKey>,
    ) -> Result<LockGuard, Error> {
        // One wait budget for the whole call.
        let began = Instant::now();
        let in_all = |error: Error| error.waited_since(began);
        let (entries, rest) = self.in_chain(keys);
        let mut also = Vec::new();
        for (outer, key) in &entries {
            let terms = terms.after(began.elapsed());
            also.push(self.enter_again(&terms, outer, key.as_str()).await.map_err(in_all)?);
        }
        if !rest.is_empty() {
            let terms = terms.after(began.elapsed());
            let guard = self.acquire_new(&terms, rest.into()).await.map_err(in_all)?;
            // The others may have been lost while it waited.
            also.iter().try_for_each(|turn| turn.ensure_held())?;
            return Ok(guard.and(also));
        }
        match also.pop() {
            Some(innermost) => Ok(innermost.and(also)),
            None => Err(Error::InvalidKey("no key is given: name what to lock".into())),
        }
    }

    pub(crate) async fn acquire_new(
        &self,
        terms: &Terms,
        keys: Box<[LockKey]>,
    ) -> Result<LockGuard, Error> {
        if let Some(site) = terms.site {
            self.look_at_order(terms, site);
        }
        let wait = Wait::begin(terms, &keys, &self.shared.settings.audience);
        let outcome = wait.instrument(self.acquire_unobserved(terms, keys, &wait)).await;
        let mut outcome = outcome.map(|guard| guard.at(terms.site));
        wait.over(&mut outcome);
        outcome
    }

    /// What waits inside of other holds should do so in one order everywhere.
    fn look_at_order(&self, terms: &Terms, inner: Site) {
        if self.shared.settings.lock_order && !terms.patience.is_once() {
            let now = Instant::now();
            let around = chain::entries().filter(|(entry, _)| {
                let is_ours = Arc::ptr_eq(&entry.watchdog, &self.shared.watchdog);
                is_ours && entry.ensure_held(now).is_ok()
            });
            self.shared.lock_order.takes(inner, around.filter_map(|(_, site)| site));
        }
    }

    async fn acquire_unobserved(
        &self,
        terms: &Terms,
        keys: Box<[LockKey]>,
        observed: &Wait,
    ) -> Result<LockGuard, Error> {
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
        let search = self.search(terms, &keys);
        let wait = self.wait_and_ask(terms, &keys, ahead, observed);
        tokio::select! {
            biased;
            outcome = wait => outcome,
            () = watchdog.stopped() => Err(shut_down(&named(&keys))),
            Some(deadlock) = OptionFuture::from(search) => Err(deadlock),
        }
    }

    async fn wait_and_ask(
        &self,
        terms: &Terms,
        keys: &[LockKey],
        mut ahead: Option<Ahead>,
        observed: &Wait,
    ) -> Result<LockGuard, Error> {
        let shared = &self.shared;
        let mut attempts = terms.patience.start(Instant::now());
        match local_line(terms, keys) {
            Some(name) if ahead.is_none() => {
                match self.stand_in_line(terms, name, &mut attempts, observed).await {
                    Ok(guard) => return Ok(guard),
                    Err(place) => ahead = place,
                }
            }
            Some(_) => {}
            None => self.give_up_kept(keys).await,
        }
        let label = shared.identity.label(terms.function);
        let claim = Claim::with(shared.inbox.id(), keys.into(), terms.sharing, &label);
        if let Some(why) = shared.watchdog.store().refuses_claim(&claim) {
            return Err(Error::InvalidOptions(why));
        }
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
            let (now, random) = (Instant::now(), random_fraction());
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
            observed.waits();
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
        observed: &Wait,
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
        let ends = attempts.line_ends(Instant::now(), random_fraction());
        observed.waits();
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
        [key] if terms.sharing == Sharing::Exclusive && !terms.by_store => Some(key.name()),
        _ => None,
    }
}

pub(super) fn shut_down(key: &str) -> Error {
    Error::ShutDown { key: key.to_owned() }
}

pub(super) fn contended(key: &str, attempts: &Attempts, holder: Option<Box<Holder>>) -> Error {
    let now = Instant::now();
    Error::Contended {
        key: key.to_owned(),
        attempts: attempts.made(now),
        waited: attempts.waited(now),
        holder,
    }
}
