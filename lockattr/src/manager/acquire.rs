//! One acquisition: enter again, or stand in line until the lock is handed over or patience ends.

use std::pin::pin;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::LockManager;
use super::asking::{Asking, Refusal};
use crate::chain::{self, Frame};
use crate::guard::Ahead;
use crate::key::LockKey;
use crate::line::{Came, Joined};
use crate::options::Terms;
use crate::retry::Attempts;
use crate::store::{Claim, Sharing};
use crate::{Error, Holder, LockGuard};

impl LockManager {
    pub(crate) async fn acquire_on(&self, terms: &Terms, key: LockKey) -> Result<LockGuard, Error> {
        let watchdog = &self.shared.watchdog;
        // First of all, also for what an earlier runtime left behind: it may be this very key's
        // release.
        watchdog.start()?;
        if let Some(outer) = chain::find(watchdog, key.name()) {
            if watchdog.is_shut_down() {
                return Err(shut_down(key.as_str()));
            }
            return enter_again(terms, &outer, &key).await;
        }
        self.acquire_new(terms, Box::new([key])).await
    }

    /// All of `keys` or none: those that this call chain has already are entered again.
    pub(crate) async fn acquire_all_on(
        &self,
        terms: &Terms,
        mut keys: Vec<LockKey>,
    ) -> Result<LockGuard, Error> {
        let watchdog = &self.shared.watchdog;
        watchdog.start()?;
        // One order for all, so that two calls that name them in other orders do not meet.
        keys.sort_by(|one, other| one.name().cmp(other.name()));
        keys.dedup();
        let (mut also, mut entered) = (Vec::new(), Vec::<Arc<Frame>>::new());
        let mut rest = Vec::new();
        for key in keys {
            let Some(outer) = chain::find(watchdog, key.name()) else {
                rest.push(key);
                continue;
            };
            if watchdog.is_shut_down() {
                return Err(shut_down(key.as_str()));
            }
            // One entry may hold several of them, and has one gate.
            if !entered.iter().any(|frame| Arc::ptr_eq(frame, &outer)) {
                also.push(enter_again(terms, &outer, &key).await?);
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
        let shared = &self.shared;
        let label = shared.identity.label(terms.function);
        let claim = Claim::with(shared.inbox.id(), keys, terms.sharing, &label);
        let claim = Arc::new(claim);
        tokio::select! {
            biased;
            outcome = self.wait_and_ask(terms, &claim) => outcome,
            () = shared.watchdog.stopped() => Err(shut_down(&claim.named())),
        }
    }

    async fn wait_and_ask(&self, terms: &Terms, claim: &Arc<Claim>) -> Result<LockGuard, Error> {
        let mut attempts = terms.patience.start(Instant::now());
        let mut asking = Asking::new(&self.shared, claim.clone(), terms);
        // After it is noted that we ask, so that a shutdown either is seen here or sees this.
        if self.shared.watchdog.is_shut_down() {
            return Err(shut_down(&claim.named()));
        }
        if let [key] = claim.keys()
            && claim.sharing() == Sharing::Exclusive
        {
            match self.stand_in_line(terms, key, &mut attempts).await {
                Stood::Lock(guard) => return Ok(guard),
                Stood::Ask(ahead) => asking.stands(ahead),
            }
        }
        loop {
            attempts.begin();
            let refusal = match asking.ask(&attempts).await {
                // Lost already if the manager was shut down meanwhile; dropped, it is given back.
                Ok(guard) if guard.is_shut_down() => return Err(shut_down(&claim.named())),
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
                    Refusal::Held { holder, .. } => contended(&claim.named(), &attempts, holder),
                    Refusal::Unknown(error) => error.about(&claim.named()),
                });
            };
            if let Some(guard) = asking.granted_before(until).await {
                return Ok(guard);
            }
        }
    }

    /// Waits among those of this process until the lock is handed over here, or until it is our
    /// turn to ask the store. Whose patience ends before asks as well, once and from no place.
    async fn stand_in_line(&self, terms: &Terms, key: &LockKey, attempts: &mut Attempts) -> Stood {
        let (lines, name) = (&self.shared.lines, key.name());
        let joined = match attempts.is_once() {
            true => lines.try_join(name).map(Joined::Ahead),
            false => Some(lines.join(name, terms.clone())),
        };
        let ahead = match joined {
            None => None,
            Some(Joined::Ahead(ahead)) => Some(ahead),
            Some(Joined::Behind(mut place)) => {
                let ends = attempts.line_ends(Instant::now(), rand::random());
                match timeout_at(ends, place.turn()).await {
                    Ok(Came::Lock(guard)) if guard.ensure_held().is_ok() => {
                        return Stood::Lock(guard);
                    }
                    // It lay too long before this task was polled.
                    Ok(Came::Lock(_lapsed)) => None,
                    Ok(Came::Ask(ahead)) => Some(ahead),
                    Err(_) => None,
                }
            }
        };
        let Some(ahead) = ahead else { return Stood::Ask(None) };
        if self.shared.watchdog.linger().is_zero() {
            return Stood::Ask(Some(ahead));
        }
        match self.shared.watchdog.take_kept(name) {
            Some(kept) => match kept.revive(terms, ahead) {
                Ok(guard) => Stood::Lock(guard),
                Err(ahead) => Stood::Ask(Some(ahead)),
            },
            None => Stood::Ask(Some(ahead)),
        }
    }
}

/// What standing in line came to.
enum Stood {
    /// The lock was handed over.
    Lock(LockGuard),
    /// The store is to be asked, from the place in front or from none.
    Ask(Option<Ahead>),
}

/// Waits for this call's turn inside a hold of its own chain.
async fn enter_again(terms: &Terms, outer: &Arc<Frame>, key: &LockKey) -> Result<LockGuard, Error> {
    if !terms.reentrant {
        return Err(Error::Reentered { key: key.to_string() });
    }
    check_sharing(terms.sharing, outer.sharing, key)?;
    outer.hold.ensure_held(Instant::now())?;
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
        () = sleep_until(ends) => Err(contended(key.as_str(), &attempts, own_label(outer))),
    }
}

/// Refuses what could never be granted: who is inside waits for nobody to be inside.
fn check_sharing(inner: Sharing, outer: Sharing, key: &LockKey) -> Result<(), Error> {
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
