//! The checks after a future was dropped: the store holds nothing of ours, the next caller acquires
//! the lock, and a hold that the future only borrowed continues.

use std::time::Duration;

use lockattr::{Error, LockGuard, LockOptions, LostReason};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::nemesis::{Nemesis, Until};
use super::stepped::{LIMIT, TRIP};
use super::world::{KEYS, LEASE, LONG, OTHER_KEY, Other, Survivor, World, for_good};

/// Two round trips, plus the delay of the timers.
const TWO_TRIPS: Duration = TRIP.saturating_mul(2).saturating_add(Duration::from_millis(2));

/// The state after a future was dropped.
pub(super) struct Aftermath {
    pub(super) world: World,
    pub(super) nemesis: Nemesis,
    pub(super) survivor: Survivor,
    pub(super) other: Other,
    /// Whether the future was polled at all.
    pub(super) polled: bool,
    /// When the nemesis began.
    pub(super) began: Instant,
}

impl Aftermath {
    pub(super) async fn check(mut self) {
        match std::mem::replace(&mut self.survivor, Survivor::Nothing) {
            Survivor::Nothing => {}
            Survivor::Held { guard, at_most_until } => {
                self.nothing_is_left(&[OTHER_KEY]).await;
                self.check_still_held(&guard, at_most_until).await;
                drop(guard);
            }
            Survivor::ShutDown(guard) => {
                if self.polled {
                    self.grants_nothing().await;
                    let Err(Error::Lost { reason, .. }) = guard.ensure_held() else {
                        panic!("not notified");
                    };
                    assert_eq!(reason, LostReason::ShutDown);
                }
                drop(guard);
            }
            Survivor::Called(calls) => self.ends(calls).await,
        }
        let sent = self.world.store.sent().len();
        self.nothing_is_left(&KEYS).await;
        self.the_next_gets_in(sent).await;
    }

    /// Checks that the guard of a future that only borrowed it is still held.
    async fn check_still_held(&self, guard: &LockGuard, at_most_until: Option<Instant>) {
        let ends_before = |time| at_most_until.is_some_and(|end| Instant::now() + time >= end);
        // A process that could not renew for longer may have lost its lease.
        let brief = self.began.elapsed() < LEASE / 8;
        let (lasting, passing) = match self.nemesis {
            Nemesis::Calm | Nemesis::Trouble { until: Until::Once, .. } => (false, true),
            Nemesis::Trouble { until, .. } => (until == Until::Ever, brief),
        };
        if !passing || ends_before(Duration::ZERO) {
            return;
        }
        guard.ensure_held().unwrap();
        assert_eq!(self.world.owner("a").await.as_deref(), Some("ours"));
        if lasting || ends_before(LONG) {
            return;
        }
        sleep(LONG).await;
        guard.ensure_held().expect("not renewed any more");
        assert_eq!(self.world.owner("a").await.as_deref(), Some("ours"));
        // No other call has the turn of this hold.
        let options = LockOptions::new().wait(Duration::ZERO);
        let nested = guard.scope(self.world.ours.try_acquire("a", options)).await;
        assert_eq!(nested.unwrap().expect("the turn is occupied").depth(), 2);
    }

    /// Checks that calls ended by a shutdown have ended.
    async fn ends(&self, mut calls: JoinSet<Result<(), Error>>) {
        if !self.polled || self.nemesis != Nemesis::Calm {
            // The calls were not notified, or they wait for the store.
            return calls.shutdown().await;
        }
        self.grants_nothing().await;
        let ends = async {
            while let Some(end) = calls.join_next().await {
                let end = end.unwrap().unwrap_err();
                let lost = matches!(end, Error::Lost { reason: LostReason::ShutDown, .. });
                assert!(lost || matches!(end, Error::ShutDown { .. }), "{end:?}");
            }
        };
        timeout(TWO_TRIPS, ends).await.expect("a call continues after a shutdown");
    }

    async fn grants_nothing(&self) {
        let refused = self.world.ours.try_acquire("fresh", LockOptions::new()).await;
        assert!(matches!(refused, Err(Error::ShutDown { .. })), "{refused:?}");
    }

    /// Checks that the store frees the keys within two round trips, or later where a release was
    /// lost.
    async fn nothing_is_left(&self, keys: &[&str]) {
        self.world.store.passable().await;
        let (mut delay, mut missed) = (TWO_TRIPS, 0);
        loop {
            sleep(delay).await;
            if self.is_clean(keys).await {
                return;
            }
            let sent = self.world.store.sent();
            let lost = sent.iter().filter(|(name, fate)| *name == "release" && !fate.arrives());
            let lost: Vec<_> = lost.collect();
            assert!(lost.len() > missed, "still ours after {delay:?}, of {sent:?}");
            if self.nemesis.is_lasting() || lost.iter().any(|(_, fate)| !fate.is_notified()) {
                break;
            }
            // A release that fails is retried after a twentieth of the time for which the store may
            // still hold the lock, which is two leases at most.
            (delay, missed) = (LIMIT + LEASE / 10 + TWO_TRIPS, lost.len());
        }
        // A release that never gets a reply is not retried: the lease expires.
        sleep(LEASE).await;
        assert!(self.is_clean(keys).await, "still ours after its lease");
    }

    async fn is_clean(&self, keys: &[&str]) -> bool {
        for key in keys {
            if self.world.owner(key).await.as_deref() == Some("ours") {
                return false;
            }
        }
        true
    }

    /// Checks that the next caller acquires the keys and keeps them, whatever request of ours is
    /// still under way.
    async fn the_next_gets_in(self, sent: usize) {
        if self.other.holds() {
            let mut owners = Vec::new();
            for key in KEYS {
                owners.extend(self.world.owner(key).await);
            }
            assert_eq!(owners, ["other"]);
            self.other.release().await;
        }
        let next = self.world.stranger("next");
        let mut guards = Vec::new();
        for key in KEYS {
            // A claim that was queued when its release was lost is granted the lock, and releases
            // it when the release is retried. If that never arrives, its entry expires.
            let max_wait = if self.nemesis == Nemesis::Calm { Duration::ZERO } else { LONG };
            let guard = next.acquire(key, for_good().wait(max_wait)).await;
            guards.push(guard.expect("the next caller cannot acquire"));
        }
        sleep(LONG).await;
        for key in KEYS {
            assert_eq!(self.world.owner(key).await.as_deref(), Some("next"));
        }
        assert!(guards.iter().all(|guard| guard.ensure_held().is_ok()));
        let sent = self.world.store.sent().split_off(sent);
        assert!(sent.iter().all(|(name, _)| *name == "release"), "sent after the drop: {sent:?}");
        for guard in guards {
            guard.release().await.unwrap();
        }
        self.nothing_is_watched().await;
    }

    /// Checks that our manager still works, and has nothing left to renew or release.
    async fn nothing_is_watched(&self) {
        if self.nemesis == Nemesis::Calm {
            match self.world.ours.try_acquire("a", LockOptions::new()).await {
                Ok(guard) => {
                    guard.expect("the lock is still held by this process").release().await.unwrap();
                }
                Err(error) => assert!(matches!(error, Error::ShutDown { .. }), "{error:?}"),
            }
        }
        let sent = self.world.store.sent();
        if sent.iter().all(|(_, fate)| fate.is_notified()) && !self.nemesis.is_lasting() {
            let started = Instant::now();
            self.world.ours.shutdown().await;
            assert!(started.elapsed() <= TWO_TRIPS, "still at it: {:?}", started.elapsed());
        }
    }
}
