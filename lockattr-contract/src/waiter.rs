//! The managers that a check plays: each has a subscriber, and claims that wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, Grant, LockKey, Notification, ReleaseOutcome,
    ReleaseRequest, RenewOutcome, RenewRequest, Sharing, Subscriber, Subscription, Waiting,
};
use lockattr::{FencingToken, Holder};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::checks::TTL;
use crate::eventually::HUNG;
use crate::subject::{LABEL, Subject};

/// In place of a name: any lock may be contended.
pub(crate) const ANY: &str = "any";

/// A manager as a store sees it.
pub(crate) struct Manager {
    store: AnyStore,
    prefix: String,
    pub(crate) subscriber: Arc<Subscriber>,
    contended: Arc<Mutex<Vec<String>>>,
}

impl Manager {
    pub(crate) fn on(subject: &Subject) -> Self {
        let contended = Arc::<Mutex<Vec<String>>>::default();
        let reported = contended.clone();
        let on_contended = move |name: Option<&str>| {
            reported.lock().expect("no panic inside").push(name.unwrap_or(ANY).to_owned());
        };
        let subscriber = Arc::new(Subscriber::new(on_contended));
        subject.subscribe(&subscriber);
        let (store, prefix) = (AnyStore::clone(subject), subject.prefix().to_owned());
        Self { store, prefix, subscriber, contended }
    }

    /// Returns an exclusive claim for one lock.
    pub(crate) fn claim_for(&self, named: &str) -> Waiter {
        self.claim_shared(&[named], Sharing::Exclusive)
    }

    pub(crate) fn claim_shared(&self, named: &[&str], sharing: Sharing) -> Waiter {
        let key = |named: &&str| LockKey::new(&self.prefix, named).expect("a good key");
        let mut keys = named.iter().map(key);
        let first = keys.next().expect("a claim has a key");
        let claim = Arc::new(Claim::of(&self.subscriber, first, keys, sharing, LABEL));
        let expected = self.subscriber.subscribe(claim.token());
        let (store, was_queued) = (self.store.clone(), AtomicBool::new(false));
        let (companion, ttl, notified_only) = (None, TTL, false);
        Waiter { store, claim, expected, companion, ttl, notified_only, was_queued }
    }

    /// Returns the names of the locks that the store reported as contended.
    pub(crate) fn contended(&self) -> Vec<String> {
        self.contended.lock().expect("no panic inside").clone()
    }
}

/// A claim, and the notifications that its manager receives for it.
pub(crate) struct Waiter {
    store: AnyStore,
    pub(crate) claim: Arc<Claim>,
    expected: Subscription,
    /// As whose companion it asks.
    companion: Option<Arc<Claim>>,
    ttl: Duration,
    notified_only: bool,
    was_queued: AtomicBool,
}

impl Waiter {
    /// Makes this waiter one that is only notified when the lock is free, and not granted it.
    pub(crate) fn notified_only(self) -> Self {
        Self { notified_only: true, ..self }
    }

    /// Makes this waiter one that may take the place of another claim of its process.
    pub(crate) fn companion_of(self, other: &Self) -> Self {
        Self { companion: Some(other.claim.clone()), ..self }
    }

    fn request(&self, waiting: Waiting) -> AcquireRequest {
        let request = AcquireRequest::new(self.claim.clone(), self.ttl).waiting(waiting);
        request.companion(self.companion.clone())
    }

    fn queue_request(&self) -> AcquireRequest {
        let again = self.was_queued.swap(true, Ordering::Relaxed);
        self.request(if self.notified_only { Waiting::Told { again } } else { Waiting::Queued })
    }

    /// Acquires the lock. Returns the fencing token and whether the lock is contended.
    pub(crate) async fn acquire(&self) -> (FencingToken, bool) {
        match self.store.acquire(&self.queue_request()).await {
            Ok(AcquireOutcome::Acquired { fencing, contended }) => (fencing, contended),
            other => panic!("{:?} was not granted: {other:?}", self.claim),
        }
    }

    /// Joins the queue, or asks again while queued. Returns the delay until the next request.
    pub(crate) async fn enqueue(&self) -> Duration {
        self.try_enqueue().await.unwrap_or_else(|| panic!("{:?} is not queued", self.claim))
    }

    /// The same behind a lease that may be over by now. Returns `None` if the claim was granted.
    pub(crate) async fn try_enqueue(&self) -> Option<Duration> {
        match self.store.acquire(&self.queue_request()).await {
            Ok(AcquireOutcome::Held { queued: Some(again), .. }) => Some(again),
            Ok(AcquireOutcome::Acquired { .. }) => None,
            other => panic!("{:?} is not queued: {other:?}", self.claim),
        }
    }

    /// Asks once. Returns whether the claim holds the lock now.
    pub(crate) async fn try_acquire(&self) -> bool {
        match self.store.acquire(&self.request(Waiting::Not)).await.expect("an answer") {
            AcquireOutcome::Acquired { .. } => true,
            AcquireOutcome::Held { queued, .. } => {
                assert_eq!(queued, None, "queued without having requested it");
                false
            }
        }
    }

    /// Asks again while queued. Returns the holder, if another claim has the lock.
    pub(crate) async fn holder_in_the_way(&self) -> Option<Holder> {
        match self.store.acquire(&self.queue_request()).await.expect("an answer") {
            AcquireOutcome::Acquired { .. } => panic!("{:?} was granted", self.claim),
            AcquireOutcome::Held { holder, .. } => holder.map(|holder| *holder),
        }
    }

    /// Waits for the lock as a manager does: for a grant, or for a notification to ask again.
    pub(crate) async fn wait_for_grant(&self) -> Grant {
        let granted = async {
            loop {
                let mut asked = match self.expected.next().await {
                    Notification::Granted(grant) => return grant,
                    Notification::AskAgain(at) => at,
                };
                // The grant may arrive before that.
                while let Ok(notification) = timeout_at(asked, self.expected.next()).await {
                    asked = match notification {
                        Notification::Granted(grant) => return grant,
                        Notification::AskAgain(at) => at,
                    };
                }
                loop {
                    let since = Instant::now();
                    match self.store.acquire(&self.queue_request()).await {
                        Ok(AcquireOutcome::Acquired { fencing, contended }) => {
                            return Grant::new(fencing, since, contended);
                        }
                        Ok(_) => break,
                        // The outcome is unknown, and no notification will come: a manager asks
                        // again.
                        Err(_) => sleep(Duration::from_millis(100)).await,
                    }
                }
            }
        };
        let granted = timeout(HUNG, granted).await;
        let grant = granted.unwrap_or_else(|_| panic!("{:?} was not notified", self.claim));
        assert!(grant.since <= Instant::now(), "the lease began at the notification or earlier");
        assert!(self.is_holder().await, "notified, but not of a grant");
        grant
    }

    /// Waits for the grant without asking again.
    pub(crate) async fn next_grant(&self) -> Grant {
        match timeout(HUNG, self.expected.next()).await.expect("notified") {
            Notification::Granted(grant) => grant,
            Notification::AskAgain(_) => panic!("not granted, but notified to retry"),
        }
    }

    /// Waits for the notification that says when to ask again.
    pub(crate) async fn next_ask_again(&self) -> Instant {
        match timeout(HUNG, self.expected.next()).await.expect("notified") {
            Notification::AskAgain(at) => at,
            other @ Notification::Granted(_) => panic!("granted: {other:?}"),
        }
    }

    /// Returns whether the store counts this claim as a holder.
    pub(crate) async fn is_holder(&self) -> bool {
        let renewal = [RenewRequest::new(self.claim.clone(), self.ttl)];
        self.store.renew(&renewal).await.remove(0).expect("an answer") == RenewOutcome::Renewed
    }

    /// Releases the lock, or leaves the queue. Returns whether the claim held the lock.
    pub(crate) async fn release(&self) -> bool {
        self.release_after(Duration::ZERO).await
    }

    pub(crate) async fn release_after(&self, after: Duration) -> bool {
        let releasing = [ReleaseRequest::new(self.claim.clone()).after(after)];
        self.store.release(&releasing).await.remove(0).expect("an answer")
            == ReleaseOutcome::Released
    }
}
