//! etcd, compared with its own lock service, which the Rust clients call: `v3lock`, with a lease
//! granted once.

mod service;

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, Etcd, Wire, bare};
use tokio::time::{Instant, sleep};

use super::NETWORK;
use crate::report::{Bar, Report};
use crate::spread::Spread;
use service::Service;

const ROUND: Duration = Duration::from_millis(200);

/// How long the lock is held before the hand-off. `v3lock` watches from a past revision, and etcd
/// serves such a watch every 100 ms.
const HOLDS: [(&str, Duration); 2] =
    [("5 ms", Duration::from_millis(5)), ("150 ms", Duration::from_millis(150))];

/// Acquisitions of one key for each second that a way is measured, and those whose times are one
/// sample.
const ONE_KEY: f64 = 5_000.0;
const SAMPLE: usize = 1_000;

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
    let connect = async || LockManager::connect(bare(&etcd.url())).await.expect("etcd answers");
    let ours = [Client::Ours(connect().await), Client::Ours(connect().await)];
    let service = async |addr: &str| Client::Service(Arc::new(Service::at(addr).await));
    let pairs = [
        Pair { name: "lockattr", clients: ours },
        Pair { name: "v3lock", clients: [service(&leader).await, service(&leader).await] },
    ];
    let [one, other] = in_turn(&pairs, time, async |pair| uncontended(pair).await).await;
    compare(report, "acquire and release", &pairs, &one, &other);
    for (name, hold) in HOLDS {
        let [one, other] = in_turn(&pairs, time, async |pair| hand_offs(pair, hold).await).await;
        compare(report, &format!("hand-off after {name}"), &pairs, &one, &other);
    }
    let wire = Wire::start(leader).await;
    wire.delay(NETWORK);
    let ours =
        LockManager::connect(&bare(&etcd.url_at(&[wire.addr()]))).await.expect("etcd answers");
    let far = [
        Pair { name: "lockattr", clients: [(); 2].map(|()| Client::Ours(ours.clone())) },
        Pair {
            name: "v3lock",
            clients: [service(&wire.addr()).await, service(&wire.addr()).await],
        },
    ];
    report.note(&format!("{NETWORK:?} each way, by a proxy in this process:"));
    let [one, other] = in_turn(&far, time, async |pair| uncontended(pair).await).await;
    compare(report, "1 ms away: acquire and release", &far, &one, &other);
    flat(report, &pairs, (time.as_secs_f64() * ONE_KEY) as usize / SAMPLE).await;
}

/// Acquires one key again and again, for `samples` samples. The service, before and after, shows
/// what became of the machine meanwhile.
async fn flat(report: &mut Report, [ours, service]: &[Pair; 2], samples: usize) {
    let before = sample(service).await;
    let first = sample(ours).await;
    let mut last = first;
    for _ in 1..samples {
        last = sample(ours).await;
    }
    let after = sample(service).await;
    report.note(&format!("{} acquisitions of one key, p50 of a thousand", samples * SAMPLE));
    for (name, [first, last]) in [(ours.name, [first, last]), (service.name, [before, after])] {
        report.note(&format!("{name:<9} first {first:>9.1} us   last {last:>9.1} us"));
    }
    report.figure("one key: v3lock's time after over before", after / before, "x");
    report.bar("one key: last thousand over first", last / first, "x", Bar::AtMost(1.2));
}

/// Returns the median time in microseconds.
async fn sample(pair: &Pair) -> f64 {
    let mut taken = Histogram::new(3).expect("three digits");
    for _ in 0..SAMPLE {
        let began = Instant::now();
        pair.clients[0].acquire(&format!("{}:again", pair.name)).await.release().await;
        record(&mut taken, began.elapsed());
    }
    taken.value_at_quantile(0.5) as f64 / 1e3
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
