//! etcd, compared with its own lock service, which the Rust clients call: `v3lock`, with a lease
//! granted once.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, Etcd};
use prost::Message;
use tokio::time::{Instant, sleep};
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::report::{Bar, Report};
use crate::spread::Spread;

const ROUND: Duration = Duration::from_millis(200);

/// How long the lock is held before the hand-off. `v3lock` watches from a past revision, and etcd
/// serves such a watch every 100 ms.
const HOLDS: [(&str, Duration); 2] =
    [("5 ms", Duration::from_millis(5)), ("150 ms", Duration::from_millis(150))];

#[derive(Clone, PartialEq, Message)]
struct LeaseGrant {
    #[prost(int64, tag = "1")]
    ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Lease {
    #[prost(int64, tag = "2")]
    id: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Lock {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int64, tag = "2")]
    lease: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Locked {
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Unlock {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Done {}

struct Service {
    channel: Channel,
    lease: i64,
}

impl Service {
    async fn at(addr: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("an address");
        let channel = endpoint.connect().await.expect("a member that is up");
        let asked = LeaseGrant { ttl: 600 };
        let lease: Lease = ask(&channel, "/etcdserverpb.Lease/LeaseGrant", asked).await;
        Self { channel, lease: lease.id }
    }

    async fn lock(&self, key: &str) -> Vec<u8> {
        let asked = Lock { name: key.into(), lease: self.lease };
        ask::<_, Locked>(&self.channel, "/v3lockpb.Lock/Lock", asked).await.key
    }

    async fn unlock(&self, key: Vec<u8>) {
        let _done: Done = ask(&self.channel, "/v3lockpb.Lock/Unlock", Unlock { key }).await;
    }
}

async fn ask<Q, A>(channel: &Channel, path: &'static str, request: Q) -> A
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut client = Grpc::new(channel.clone());
    client.ready().await.expect("connected");
    let path = path.parse().expect("a path");
    let answer = client.unary(tonic::Request::new(request), path, ProstCodec::<Q, A>::default());
    answer.await.expect("an answer").into_inner()
}

#[derive(Clone)]
enum Client {
    Ours(LockManager),
    Service(Arc<Service>),
}

enum Held {
    Ours(lockattr::LockGuard),
    Service(Arc<Service>, Vec<u8>),
}

impl Client {
    async fn acquire(&self, key: &str) -> Held {
        match self {
            Self::Ours(manager) => {
                Held::Ours(manager.acquire(key, LockOptions::new()).await.expect("granted"))
            }
            Self::Service(service) => Held::Service(service.clone(), service.lock(key).await),
        }
    }
}

impl Held {
    async fn release(self) {
        match self {
            Self::Ours(guard) => guard.release().await.expect("ours"),
            Self::Service(service, key) => service.unlock(key).await,
        }
    }
}

/// One of the two ways, with two independent clients.
struct Pair {
    name: &'static str,
    clients: [Client; 2],
}

#[derive(Default)]
struct Taken {
    all: Option<Histogram<u64>>,
    medians: Vec<f64>,
}

impl Taken {
    fn add(&mut self, round: Histogram<u64>) {
        self.medians.push(round.value_at_quantile(0.5) as f64);
        match &mut self.all {
            Some(all) => all.add(round).expect("alike"),
            None => self.all = Some(round),
        }
    }

    fn micros(&self, quantile: f64) -> f64 {
        self.all.as_ref().map_or(0.0, |all| all.value_at_quantile(quantile) as f64 / 1e3)
    }
}

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("etcd", "etcd of three members on this machine, beside its own lock service");
    let etcd = Etcd::start().await;
    let leader = etcd.addrs()[etcd.leader().await].clone();
    let connect = async || LockManager::connect(etcd.url()).await.expect("etcd answers");
    let ours = [Client::Ours(connect().await), Client::Ours(connect().await)];
    let service = async || Client::Service(Arc::new(Service::at(&leader).await));
    let pairs = [
        Pair { name: "lockattr", clients: ours },
        Pair { name: "v3lock", clients: [service().await, service().await] },
    ];
    let [one, other] = in_turn(&pairs, time, async |pair| uncontended(pair).await).await;
    compare(report, "acquire and release", &pairs, &one, &other);
    for (name, hold) in HOLDS {
        let [one, other] = in_turn(&pairs, time, async |pair| hand_offs(pair, hold).await).await;
        compare(report, &format!("hand-off after {name}"), &pairs, &one, &other);
    }
}

fn compare(report: &mut Report, what: &str, pairs: &[Pair; 2], ours: &Taken, theirs: &Taken) {
    for (pair, taken) in pairs.iter().zip([ours, theirs]) {
        let [p50, p99] = [0.5, 0.99].map(|quantile| taken.micros(quantile));
        report.note(&format!("{what:<24} {:<9} p50 {p50:>9.1} us   p99 {p99:>9.1} us", pair.name));
    }
    let ratios = ours.medians.iter().zip(&theirs.medians).map(|(one, other)| one / other);
    let ratio = Spread::of(ratios).expect("there was a round");
    report.bar(&format!("{what} over v3lock's, p50"), ratio, "x", Bar::AtMost(1.0));
}

/// Both in turn, ABBA…, for `time` each.
async fn in_turn(
    pairs: &[Pair; 2],
    time: Duration,
    round: impl AsyncFn(&Pair) -> Histogram<u64>,
) -> [Taken; 2] {
    let mut taken = [Taken::default(), Taken::default()];
    for pair in pairs {
        round(pair).await;
    }
    let rounds = (time.as_nanos() / ROUND.as_nanos()).max(3);
    for nth in 0..rounds {
        for turn in 0..2 {
            let which = if nth % 2 == 0 { turn } else { 1 - turn };
            taken[which].add(round(&pairs[which]).await);
        }
    }
    taken
}

async fn uncontended(pair: &Pair) -> Histogram<u64> {
    let mut taken = Histogram::new(3).expect("three digits");
    let ends = Instant::now() + ROUND;
    while Instant::now() < ends {
        let began = Instant::now();
        pair.clients[0].acquire(&format!("{}:free", pair.name)).await.release().await;
        record(&mut taken, began.elapsed());
    }
    taken
}

/// From the release until the other client has the lock.
async fn hand_offs(pair: &Pair, hold: Duration) -> Histogram<u64> {
    let mut taken = Histogram::new(3).expect("three digits");
    let key = format!("{}:wanted", pair.name);
    let mut held = pair.clients[0].acquire(&key).await;
    for nth in 1..=4 {
        let (next, key) = (pair.clients[nth % 2].clone(), key.clone());
        let waits = tokio::spawn(async move {
            let held = next.acquire(&key).await;
            (held, Instant::now())
        });
        sleep(hold).await;
        let began = Instant::now();
        held.release().await;
        let (next, has_it) = waits.await.expect("no panic");
        record(&mut taken, has_it - began);
        held = next;
    }
    held.release().await;
    taken
}

fn record(taken: &mut Histogram<u64>, time: Duration) {
    taken.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).expect("it resizes");
}
