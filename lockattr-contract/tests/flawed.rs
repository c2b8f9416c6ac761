//! The suite notices what authors get wrong: each flaw breaks the promises about it and no other.

use std::any::Any;
use std::collections::HashMap;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, LockKey, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Sharing, Store, StoreError,
};
use lockattr::{FencingToken, Holder};
use lockattr_contract::{Fleet, Promise, promises};
use tokio::time::Instant;

/// What an author got wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    ReleaseIgnoresTheToken,
    RenewalResurrects,
    RenewalShortens,
    TokensGoBack,
    EachProcessForItself,
    SecondKeyIsIgnored,
    ADoneKeyIsStillItsClaims,
    AMarkStartsAgain,
}

const NONE: u8 = Flaw::None as u8;

/// A lock.
#[derive(Debug)]
struct Held {
    claim: Arc<Claim>,
    ends: Instant,
    done: bool,
}

/// The smallest store: exclusive locks with one key, in a map, on tokio's clock.
#[derive(Debug)]
struct Small {
    flaw: Flaw,
    locks: Mutex<HashMap<String, Held>>,
    counter: Mutex<u64>,
}

impl Small {
    fn new(flaw: Flaw) -> Self {
        Self { flaw, locks: Mutex::default(), counter: Mutex::new(1) }
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashMap<String, Held>, Instant) -> T) -> T {
        let (mut locks, now) = (self.locks.lock().unwrap(), Instant::now());
        let keeps = self.flaw == Flaw::RenewalResurrects;
        locks.retain(|_, held| keeps || held.ends > now);
        change(&mut locks, now)
    }

    fn next_token(&self) -> FencingToken {
        let mut counter = self.counter.lock().unwrap();
        *counter = match self.flaw {
            // As if a counter of four bits ran over.
            Flaw::TokensGoBack => (*counter + 1) % 16 + 1,
            _ => *counter + 1,
        };
        FencingToken::from_counter(*counter)
    }

    /// Whether the lock is the claim's.
    fn is_of(&self, held: &Held, claim: &Claim) -> bool {
        let still = self.flaw == Flaw::ADoneKeyIsStillItsClaims;
        held.claim.token() == claim.token() && (still || !held.done)
    }
}

fn shown(held: &Held, now: Instant) -> Holder {
    let left = Some(held.ends.saturating_duration_since(now));
    let mut holder = Holder::from_value(held.claim.value(), left);
    holder.done = held.done;
    holder
}

impl Store for Small {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let claim = &request.claim;
        Ok(self.with(|locks, now| {
            let held = locks.get(claim.key().name()).filter(|held| held.ends > now);
            if let Some(held) = held.filter(|held| !self.is_of(held, claim)) {
                let holder = Some(Box::new(shown(held, now)));
                return AcquireOutcome::Held { holder, queued: None };
            }
            let held = Held { claim: claim.clone(), ends: now + request.ttl, done: false };
            locks.insert(claim.key().name().to_owned(), held);
            AcquireOutcome::Acquired { fencing: self.next_token(), contended: false }
        }))
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let renew = |renewal: &RenewRequest| {
            self.with(|locks, now| {
                let held = locks.get_mut(renewal.claim.key().name());
                match held.filter(|held| self.is_of(held, &renewal.claim)) {
                    Some(held) => {
                        let longer = now + renewal.ttl;
                        let shortens = self.flaw == Flaw::RenewalShortens;
                        held.ends = if shortens { longer } else { longer.max(held.ends) };
                        Ok(RenewOutcome::Renewed)
                    }
                    None => Ok(RenewOutcome::NotHeld),
                }
            })
        };
        renewals.iter().map(renew).collect()
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let release = |release: &ReleaseRequest| {
            self.with(|locks, now| {
                let name = release.claim.key().name();
                let blind = self.flaw == Flaw::ReleaseIgnoresTheToken;
                let ours = |held: &&mut Held| blind || self.is_of(held, &release.claim);
                let Some(held) = locks.get_mut(name).filter(ours).filter(|held| held.ends > now)
                else {
                    return Ok(ReleaseOutcome::NotHeld);
                };
                held.ends = now + release.after;
                if release.after.is_zero() {
                    locks.remove(name);
                }
                Ok(ReleaseOutcome::Released)
            })
        };
        releases.iter().map(release).collect()
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let held = |locks: &mut HashMap<String, Held>, now| {
            locks.get(key.name()).filter(|held| held.ends > now).map(|held| shown(held, now))
        };
        Ok(self.with(held))
    }

    async fn mark_done(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        Ok(self.with(|locks, now| {
            let held = locks.get_mut(claim.key().name()).filter(|held| held.ends > now);
            let Some(held) = held.filter(|held| held.claim.token() == claim.token()) else {
                return ReleaseOutcome::NotHeld;
            };
            if !held.done || self.flaw == Flaw::AMarkStartsAgain {
                (held.done, held.ends) = (true, now + lasts);
            }
            ReleaseOutcome::Released
        }))
    }

    fn refuses_done(&self) -> Option<String> {
        None
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        let is_single = claim.keys().len() == 1 || self.flaw == Flaw::SecondKeyIsIgnored;
        let refused = claim.sharing() != Sharing::Exclusive || !is_single;
        refused.then(|| "only exclusive locks with one key".to_owned())
    }
}

/// The small store with one flaw.
struct With<const FLAW: u8>(Arc<Small>);

impl<const FLAW: u8> With<FLAW> {
    fn flaw() -> Flaw {
        let all = [
            Flaw::None,
            Flaw::ReleaseIgnoresTheToken,
            Flaw::RenewalResurrects,
            Flaw::RenewalShortens,
            Flaw::TokensGoBack,
            Flaw::EachProcessForItself,
            Flaw::SecondKeyIsIgnored,
            Flaw::ADoneKeyIsStillItsClaims,
            Flaw::AMarkStartsAgain,
        ];
        *all.iter().find(|flaw| **flaw as u8 == FLAW).expect("a flaw")
    }
}

impl<const FLAW: u8> Fleet for With<FLAW> {
    const PAUSED_CLOCK: bool = true;

    async fn start() -> Self {
        Self(Arc::new(Small::new(Self::flaw())))
    }

    fn node(&self) -> AnyStore {
        match Self::flaw() {
            Flaw::EachProcessForItself => AnyStore::new(Small::new(Self::flaw())),
            _ => self.0.clone().into(),
        }
    }
}

/// Without a flaw it keeps all promises, so each failure below comes from the flaw.
mod without_a_flaw {
    lockattr_contract::store_contract!(super::With<{ super::NONE }>, without: {
        wait_queue: "it notifies no claim",
        shared: "a lock has one holder",
        permits: "a lock has one holder",
        several_keys: "a claim has one key",
        listing: "it has no such command",
        force_release: "it has no such command",
        companions: "it has no wait queue",
        downgrade: "it has no shared locks",
    });
}

fn text(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).expect("a message")
}

/// Returns the promises that the flaw breaks, each with the message of its check.
fn broken_by<const FLAW: u8>() -> Vec<(Promise, String)> {
    let is_kept = |promise: &Promise| {
        let extra = ["overtaking", "quorum_node", "connection_locks"];
        let has_it = promise.needs().iter().all(|need| *need == "done");
        has_it
            && promise.name() != "a_store_that_keeps_no_key_done_says_so"
            && !extra.contains(&promise.group())
    };
    let check = |promise: Promise| {
        let panic = catch_unwind(|| promise.check::<With<FLAW>>()).err()?;
        Some((promise, text(&*panic).to_owned()))
    };
    promises::all().into_iter().filter(is_kept).filter_map(check).collect()
}

/// Asserts that the flaw breaks these promises and no other, and what the first message says.
#[track_caller]
fn assert_breaks<const FLAW: u8>(names: &[&str], sentence: &str, found: &str) {
    let broken = broken_by::<FLAW>();
    let broken_names: Vec<_> = broken.iter().map(|(promise, _)| promise.name()).collect();
    assert_eq!(broken_names, names);
    for (promise, message) in &broken {
        assert!(message.starts_with(promise.sentence()), "{message}");
        assert!(message.contains(promise.name()), "{message}");
    }
    let (_, message) = &broken[0];
    assert!(message.starts_with(sentence), "{message}");
    assert!(message.contains(found), "{message}");
}

#[test]
fn a_release_that_ignores_the_token_is_noticed() {
    assert_breaks::<{ Flaw::ReleaseIgnoresTheToken as u8 }>(
        &[
            "a_stale_release_frees_no_lock",
            "a_lease_ends_by_itself",
            "a_lock_excludes_other_processes",
            "a_lock_that_is_not_held_does_not_stay_locked",
            "a_done_key_is_no_longer_its_claims",
        ],
        "A release compares the owner token: a former holder's release does not free the lock of its successor.",
        "NotHeld",
    );
}

#[test]
fn a_renewal_that_resurrects_a_lease_is_noticed() {
    assert_breaks::<{ Flaw::RenewalResurrects as u8 }>(
        &["a_renewal_does_not_resurrect_a_lease_that_ended"],
        "A renewal after the lease has ended answers `NotHeld`, also if no other claim came since",
        "it had ended",
    );
}

#[test]
fn a_renewal_that_shortens_is_noticed() {
    assert_breaks::<{ Flaw::RenewalShortens as u8 }>(
        &["a_renewal_never_shortens"],
        "A renewal never shortens a lease",
        "left > TTL",
    );
}

#[test]
fn tokens_that_go_back_are_noticed() {
    assert_breaks::<{ Flaw::TokensGoBack as u8 }>(
        &[
            "fencing_tokens_grow_in_order",
            "odd_keys_are_kept_apart",
            "fencing_tokens_grow_across_processes",
        ],
        "Fencing tokens only grow, per key",
        " after Some(FencingToken(",
    );
}

#[test]
fn a_store_that_locks_in_its_own_process_only_is_noticed() {
    assert_breaks::<{ Flaw::EachProcessForItself as u8 }>(
        &[
            "a_counter_under_the_lock_loses_nothing",
            "a_lock_excludes_other_processes",
            "fencing_tokens_grow_across_processes",
            "fencing_tokens_grow_for_a_process_that_starts_later",
            "a_done_key_stays_held_for_its_period",
        ],
        "Two managers over two nodes exclude each other",
        "two callers were inside at the same time",
    );
}

#[test]
fn a_claim_whose_second_key_is_ignored_is_noticed() {
    assert_breaks::<{ Flaw::SecondKeyIsIgnored as u8 }>(
        &["a_store_of_single_keys_refuses_several"],
        "`refuses_claim` says why a store of single keys never grants a claim for several.",
        "accepts a claim for several keys",
    );
}

#[test]
fn a_done_key_that_is_still_its_claims_is_noticed() {
    assert_breaks::<{ Flaw::ADoneKeyIsStillItsClaims as u8 }>(
        &["a_done_key_is_no_longer_its_claims"],
        "No renewal, release or acquire of the claim that marked a key takes the mark away",
        "its claim renewed it",
    );
}

#[test]
fn a_mark_that_starts_again_is_noticed() {
    assert_breaks::<{ Flaw::AMarkStartsAgain as u8 }>(
        &["a_key_can_be_marked_again_by_its_own_claim"],
        "A mark can be repeated",
        "it began again",
    );
}
