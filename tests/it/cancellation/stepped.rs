//! A store that is a round trip away: each command takes time and meets its fate.
//!
//! A command is sent by the first poll of its future. It takes effect after half a round trip, even
//! if its future is dropped, and gets its reply after the other half. Its future is woken at both,
//! so each half is a point to be dropped at.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use lockattr::Holder;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, MemoryStore, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Store, StoreError, Subscriber,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::nemesis::{Fate, Nemesis};

/// One round trip.
pub(super) const TRIP: Duration = Duration::from_millis(4);

/// The time after which an error comes in place of the reply.
pub(super) const LIMIT: Duration = Duration::from_millis(20);

/// An in-memory store behind a simulated network.
#[derive(Debug)]
pub(super) struct Stepped {
    memory: Arc<MemoryStore>,
    wire: mpsc::UnboundedSender<Parcel>,
    /// How long a late reply takes, and how much longer a slow request takes.
    late: Duration,
    slow: Duration,
    /// Whether frozen commands may continue.
    thawed: watch::Sender<bool>,
    script: Mutex<Script>,
}

#[derive(Debug, Default)]
struct Script {
    /// Commands are counted only once this is set.
    nemesis: Option<Nemesis>,
    /// Fates that the first commands meet instead.
    first: VecDeque<Fate>,
    dropped: bool,
    /// When the last command arrives, and with it every command that follows at once.
    passable: Option<Instant>,
    sent: Vec<(&'static str, Fate)>,
}

struct Parcel {
    arrives: Instant,
    frozen: bool,
    effect: BoxFuture<'static, ()>,
}

impl Stepped {
    /// Creates a store whose late replies take `late`, and whose slow requests take `slow` longer.
    pub(super) fn new(late: Duration, slow: Duration) -> Arc<Self> {
        let (wire, parcels) = mpsc::unbounded_channel();
        let (thawed, thaw) = watch::channel(false);
        tokio::spawn(carry(parcels, thaw));
        let (memory, script) = Default::default();
        Arc::new(Self { memory, wire, late, slow, thawed, script })
    }

    /// Returns the underlying store without the network, for clients that are not under test.
    pub(super) fn memory(&self) -> &Arc<MemoryStore> {
        &self.memory
    }

    /// Sets the fates of the first commands of the future under test, in every nemesis.
    pub(super) fn first(&self, fates: &[Fate]) {
        self.script().first = fates.iter().copied().collect();
    }

    /// Starts counting commands, and starts the nemesis.
    pub(super) fn begin(&self, nemesis: Nemesis) {
        self.script().nemesis = Some(nemesis);
    }

    /// Records that the future under test is dropped.
    pub(super) fn dropped(&self) {
        let mut script = self.script();
        script.dropped = true;
        script.first.clear();
        self.thawed.send_replace(true);
    }

    /// Returns the commands sent since `begin`, and the fate of each.
    pub(super) fn sent(&self) -> Vec<(&'static str, Fate)> {
        self.script().sent.clone()
    }

    /// Waits until slow commands have arrived, since a later command cannot overtake them.
    pub(super) async fn passable(&self) {
        let passable = self.script().passable;
        if let Some(passable) = passable {
            sleep_until(passable).await;
        }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// Returns the fate of a command that is being sent now.
    fn fate(&self, command: &'static str) -> Fate {
        let mut script = self.script();
        let Some(nemesis) = script.nemesis else { return Fate::Answered };
        let number = script.sent.len() + 1;
        let scripted = script.first.pop_front();
        let fate = scripted.unwrap_or_else(|| nemesis.fate(number, script.dropped));
        script.sent.push((command, fate));
        fate
    }

    /// Sends the command when first polled. `nothing` turns an error into a reply.
    async fn call<T: Send + 'static>(
        &self,
        command: &'static str,
        effect: impl Future<Output = T> + Send + 'static,
        nothing: impl FnOnce(StoreError) -> T,
    ) -> T {
        let (fate, sent) = (self.fate(command), Instant::now());
        let (answer, answered) = oneshot::channel();
        if fate.arrives() {
            let effect = Box::pin(async move { drop(answer.send(effect.await)) });
            let slow = if fate == Fate::Slow { self.slow } else { Duration::ZERO };
            let (arrives, frozen) = (sent + slow + TRIP / 2, fate == Fate::Frozen);
            self.script().passable = Some(arrives);
            drop(self.wire.send(Parcel { arrives, frozen, effect }));
        }
        match fate {
            Fate::NotSent => return nothing(StoreError::new("no connection").not_sent()),
            Fate::Away => return pending().await,
            Fate::Lost => {
                sleep_until(sent + LIMIT).await;
                return nothing(StoreError::new("no answer: it never arrived"));
            }
            _ => {}
        }
        let answer = answered.await.expect("the wire outlives the test");
        match fate {
            Fate::Silent => return pending().await,
            Fate::Failed => {
                sleep_until(sent + LIMIT).await;
                return nothing(StoreError::new("no answer: it was lost on its way back"));
            }
            Fate::Late => sleep_until(sent + self.late).await,
            _ => sleep_until(Instant::now() + TRIP / 2).await,
        }
        answer
    }
}

/// Delivers the commands in the order they were sent.
async fn carry(mut parcels: mpsc::UnboundedReceiver<Parcel>, mut thaw: watch::Receiver<bool>) {
    while let Some(parcel) = parcels.recv().await {
        sleep_until(parcel.arrives).await;
        if parcel.frozen && thaw.wait_for(|thawed| *thawed).await.is_err() {
            return;
        }
        parcel.effect.await;
    }
}

impl Store for Stepped {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let (memory, request) = (self.memory.clone(), request.clone());
        let effect = async move { memory.acquire(&request).await };
        self.call("acquire", effect, Err).await
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.memory.subscribe(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let (memory, renewals) = (self.memory.clone(), renewals.to_vec());
        let nothing = {
            let count = renewals.len();
            move |error| vec![Err(error); count]
        };
        let effect = async move { memory.renew(&renewals).await };
        self.call("renew", effect, nothing).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let (memory, releases) = (self.memory.clone(), releases.to_vec());
        let nothing = {
            let count = releases.len();
            move |error| vec![Err(error); count]
        };
        let effect = async move { memory.release(&releases).await };
        self.call("release", effect, nothing).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let (memory, key) = (self.memory.clone(), key.clone());
        let effect = async move { memory.holder(&key).await };
        self.call("holder", effect, Err).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.call("ping", async { Ok(()) }, Err).await
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        self.memory.refuses_claim(claim)
    }
}
