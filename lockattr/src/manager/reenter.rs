//! Re-entering a hold of the call's own chain, without a request to the store.

use std::cmp::Reverse;
use std::pin::pin;
use std::sync::Arc;

use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};

use super::LockManager;
use super::acquire::report;
use super::acquire::shut_down;
use crate::hold::chain::{self, Frame};
use crate::hold::last_known::contended;
use crate::lock::key::{LockKey, sorted_unique};
use crate::lock::options::ResolvedOptions;
use crate::observe::AcquireObservation;
use crate::platform::entropy::random_fraction;
use crate::store::Sharing;
use crate::{Error, Holder, LockGuard, LostReason};

/// Re-enters a hold of the call's own chain, if no other call is inside. The clock is checked when
/// the body begins (`hold/enter.rs`), and not here.
fn try_enter_again(
    options: &ResolvedOptions,
    outer: &Arc<Frame>,
    key: &str,
) -> Result<Option<LockGuard>, Error> {
    let ended = outer.hold().ended_by();
    if ended == Some(LostReason::ShutDown) {
        return Err(shut_down(key));
    }
    if !options.reentrant {
        return Err(Error::Reentered { key: key.to_owned() });
    }
    check_sharing(options.sharing, outer.sharing, key)?;
    if let Some(reason) = ended {
        return Err(outer.hold().lost(reason));
    }
    let Some(reentry) = outer.clone().try_enter(options.sharing, options.site) else {
        return Ok(None);
    };
    outer.core().watchdog.telemetry().reentered(options);
    Ok(Some(LockGuard::reentered(reentry)))
}

impl LockManager {
    fn observe_inside(&self, options: &ResolvedOptions, key: &str) -> AcquireObservation {
        let telemetry = self.shared.core.watchdog.telemetry();
        AcquireObservation::inside(options, key, &self.shared.recorder, telemetry)
    }

    pub(super) async fn enter_again(
        &self,
        options: &ResolvedOptions,
        outer: &Arc<Frame>,
        key: &str,
    ) -> Result<LockGuard, Error> {
        let wait = self.observe_inside(options, key);
        let outcome = enter_again(options, outer, key, &wait).await;
        report(wait, outcome)
    }

    /// Re-enters a hold of the call's own chain, if it has one on `key` and no other call is
    /// inside. This is cheap: it uses few of its options, and never waits.
    pub(crate) async fn enter_at_once(
        &self,
        options: &ResolvedOptions,
        key: &str,
    ) -> Result<Option<LockGuard>, Error> {
        let entered = self.enter_at_once_blocking(options, key)?;
        if entered.is_some() {
            // It is ready at once; a loop of such calls must let other tasks run.
            consume_budget().await;
        }
        Ok(entered)
    }

    /// The same, on this thread.
    pub(crate) fn enter_at_once_blocking(
        &self,
        options: &ResolvedOptions,
        key: &str,
    ) -> Result<Option<LockGuard>, Error> {
        match chain::find(&self.shared.core, key) {
            Some(outer) => self.try_enter_again(options, &outer, key),
            None => Ok(None),
        }
    }

    pub(super) fn try_enter_again(
        &self,
        options: &ResolvedOptions,
        outer: &Arc<Frame>,
        key: &str,
    ) -> Result<Option<LockGuard>, Error> {
        let inside = || self.observe_inside(options, key);
        match try_enter_again(options, outer, key) {
            Ok(None) => Ok(None),
            Ok(Some(mut guard)) => {
                let observation = inside().entered(guard.frame().hold());
                guard.watch(observation);
                Ok(Some(guard))
            }
            Err(error) => {
                inside().refused(&error);
                Err(error)
            }
        }
    }

    /// Re-enters the holds on all of `keys`, if this call chain has them and no other call is
    /// inside.
    pub(super) fn try_enter_all_again(
        &self,
        options: &ResolvedOptions,
        keys: &[LockKey],
    ) -> Result<Option<LockGuard>, Error> {
        let (entries, rest) = self.in_chain(keys.to_vec());
        if !rest.is_empty() {
            return Ok(None);
        }
        let mut reentered = Vec::new();
        for (outer, key) in &entries {
            let Some(guard) = self.try_enter_again(options, outer, key.as_str())? else {
                return Ok(None);
            };
            reentered.push(guard);
        }
        Ok(reentered.pop().map(|innermost| innermost.with_reentered(reentered)))
    }

    /// The entries of this call chain that hold some of `keys`, each once with one of its keys; and
    /// the keys that the chain does not hold.
    pub(super) fn in_chain(
        &self,
        keys: Vec<LockKey>,
    ) -> (Vec<(Arc<Frame>, LockKey)>, Vec<LockKey>) {
        let (mut entries, mut rest) = (Vec::<(Arc<Frame>, LockKey)>::new(), Vec::new());
        for key in sorted_unique(keys) {
            match chain::find(&self.shared.core, key.as_str()) {
                // One entry may hold several keys, and has one gate.
                Some(outer) if entries.iter().any(|(known, _)| Arc::ptr_eq(known, &outer)) => {}
                Some(outer) => entries.push((outer, key)),
                None => rest.push(key),
            }
        }
        // Branches that want the same holds must wait at their gates in the same order.
        entries.sort_by_key(|(outer, _)| Reverse(chain::within(outer)));
        (entries, rest)
    }
}

/// Waits until this call may enter a hold of its own chain.
async fn enter_again(
    options: &ResolvedOptions,
    outer: &Arc<Frame>,
    key: &str,
    observation: &AcquireObservation,
) -> Result<LockGuard, Error> {
    if let Some(guard) = try_enter_again(options, outer, key)? {
        return Ok(guard);
    }
    let mut attempts = options.wait_budget.start(Instant::now());
    attempts.begin();
    // In the gate's queue from here on, so that calls enter in their order.
    let reentry = pin!(outer.clone().enter(options.sharing, options.site));
    let ended = pin!(outer.clone().ended());
    let ends = attempts.wait_deadline(Instant::now(), random_fraction());
    observation.waits();
    tokio::select! {
        biased;
        lost = ended => Err(lost),
        reentry = reentry => {
            // The call of the outer entry has returned meanwhile.
            let reentry = reentry.ok_or_else(|| outer.hold().lost(LostReason::Released))?;
            outer.core().watchdog.telemetry().reentered(options);
            Ok(LockGuard::reentered(reentry))
        }
        () = sleep_until(ends) => Err(contended(key, &attempts, own_label(outer))),
    }
}

/// Refuses what could never be granted: the call would wait for its own chain.
fn check_sharing(inner: Sharing, outer: Sharing, key: &str) -> Result<(), Error> {
    let (inner, outer) = match (inner, outer) {
        (_, Sharing::Exclusive)
        | (Sharing::Shared, Sharing::Shared)
        | (Sharing::Permits(_), Sharing::Permits(_)) => return Ok(()),
        (inner, outer) => (described(inner), described(outer)),
    };
    Err(Error::InvalidOptions(format!(
        "this call chain holds `{key}` {outer}, so a nested call can never acquire it {inner}: \
         acquire it {inner} where the chain begins"
    )))
}

fn described(sharing: Sharing) -> &'static str {
    match sharing {
        Sharing::Exclusive => "with `mode = exclusive`",
        Sharing::Shared => "with `mode = shared`",
        Sharing::Permits(_) => "with `permits`",
    }
}

/// The label of a hold of this process, for calls that wait for it inside the chain.
fn own_label(frame: &Frame) -> Option<Box<Holder>> {
    let remaining = frame.hold().valid_until().saturating_duration_since(Instant::now());
    let owner = frame.hold().claim().last_owner();
    Some(Box::new(Holder::from_value(owner.value(), Some(remaining))))
}
