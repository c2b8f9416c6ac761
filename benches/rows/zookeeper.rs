//! ZooKeeper, compared with the lock recipe of its Rust client, on the same three servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, Wire, ZooKeeper, bare};
use tokio::time::{Instant, sleep};
use zookeeper_client::{Acls, Client, CreateMode, LockOptions as TheirOptions, LockPrefix};

use super::NETWORK;
use crate::report::{Bar, Report};
use crate::taken::Taken;

/// Short and in turn, because noise comes and goes.
const ROUND: Duration = Duration::from_millis(200);

/// How long a holder holds, so that the next one is certainly queued.
const HELD: Duration = Duration::from_millis(5);

/// A way to acquire and release a lock, as two processes.
#[derive(Clone)]
enum Way {
    Ours(LockManager),
    Theirs(Client),
}

impl Way {
    /// Holds the lock for `held`. Returns how long the acquire, the hand-off and the whole hold took.
    async fn hold(&self, key: &str, held: Duration, let_go: &Mutex<Option<Instant>>) -> Held {
        let began = Instant::now();
        match self {
            Self::Ours(manager) => {
                let guard = manager.acquire(key, LockOptions::new()).await.expect("granted");
                let had = note(began, let_go);
                pause(held).await;
                leaves(let_go);
                guard.release().await.expect("ours");
                Held { whole: began.elapsed(), ..had }
            }
            Self::Theirs(client) => {
                let dir = format!("/theirs/{key}");
                let parents = CreateMode::Container.with_acls(Acls::anyone_all());
                let options = TheirOptions::new(Acls::anyone_all());
                let options = options.with_ancestor_options(parents).expect("a directory");
                let prefix = LockPrefix::new_curator(&dir, "lock-").expect("a good name");
                let lock = client.lock(prefix, b"", options).await.expect("granted");
                let had = note(began, let_go);
                pause(held).await;
                leaves(let_go);
                // Its drop would release the lock in a task, at an unknown time.
                let path = lock.lock_path().to_owned();
                std::mem::forget(lock);
                client.delete(&path, None).await.expect("ours");
                Held { whole: began.elapsed(), ..had }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Held {
    acquire: Duration,
    /// Since the release of the previous holder.
    handed: Option<Duration>,
    whole: Duration,
}

fn note(began: Instant, let_go: &Mutex<Option<Instant>>) -> Held {
    let acquire = began.elapsed();
    let handed = let_go.lock().expect("no panic").take().map(|since| since.elapsed());
    Held { acquire, handed, whole: acquire }
}

async fn pause(held: Duration) {
    if !held.is_zero() {
        sleep(held).await;
    }
}

fn leaves(let_go: &Mutex<Option<Instant>>) {
    *let_go.lock().expect("no panic") = Some(Instant::now());
}

fn histogram(times: impl Iterator<Item = Duration>) -> Histogram<u64> {
    let mut round = Histogram::new(3).expect("three digits");
    for time in times {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        round.record(nanos).expect("it resizes");
    }
    round
}

/// All ways take turns at one key, each in its own task, as services do.
async fn round(ways: &[Way], key: &str, held: Duration) -> Vec<Held> {
    let (ends, let_go) = (Instant::now() + ROUND, Arc::new(Mutex::new(None)));
    let tasks: Vec<_> = ways
        .iter()
        .map(|way| {
            let (way, key, let_go) = (way.clone(), key.to_owned(), let_go.clone());
            tokio::spawn(async move {
                let mut all = Vec::new();
                while Instant::now() < ends {
                    all.push(way.hold(&key, held, &let_go).await);
                }
                all
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("no panic"));
    }
    all
}

/// Two clients of each way, at one server that does not lead, so that both pay for the same hops
/// between the servers.
async fn ways(ensemble: &ZooKeeper, addr: &str) -> [Vec<Way>; 2] {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let url = bare(&ensemble.url_at(&[addr.to_owned()]));
        ours.push(Way::Ours(LockManager::connect(&url).await.expect("the servers answer")));
        let connector = Client::connector().with_session_timeout(Duration::from_secs(20));
        theirs.push(Way::Theirs(connector.connect(addr).await.expect("the servers answer")));
    }
    [ours, theirs]
}

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("zookeeper", "three servers, uncontended and from hand to hand");
    let ensemble = ZooKeeper::start().await;
    let follower = (ensemble.leader().await + 1) % ensemble.addrs().len();
    let addr = ensemble.addrs()[follower].clone();
    let near = ways(&ensemble, &addr).await;
    // Warms up the JIT compiler of the server.
    for _ in 0..10 {
        for ways in &near {
            round(&ways[..1], "alone", Duration::ZERO).await;
            round(ways, "handed", HELD).await;
        }
    }
    compare(report, &near, time, ["acquire", "acquire and release", "hand-over"]).await;
    let wire = Wire::start(addr).await;
    wire.delay(NETWORK);
    let far = ways(&ensemble, &wire.addr()).await;
    report.note(&format!("{NETWORK:?} each way, by a proxy in this process:"));
    let what = ["acquire", "acquire and release", "hand-over"];
    compare(report, &far, time, what.map(|what| format!("1 ms away: {what}"))).await;
}

async fn compare(
    report: &mut Report,
    [ours, theirs]: &[Vec<Way>; 2],
    time: Duration,
    what: [impl AsRef<str>; 3],
) {
    let rounds = (time.as_nanos() / ROUND.as_nanos()).max(3);
    let mut taken = [ours, theirs].map(|ways| (ways, [(); 3].map(|()| Taken::new())));
    for nth in 0..rounds {
        for turn in 0..2 {
            let (ways, [acquire, whole, handed]) = &mut taken[usize::from(nth % 2 == turn)];
            let alone = round(&ways[..1], "alone", Duration::ZERO).await;
            acquire.add(histogram(alone.iter().map(|held| held.acquire)));
            whole.add(histogram(alone.iter().map(|held| held.whole)));
            let both = round(ways, "handed", HELD).await;
            handed.add(histogram(both.iter().filter_map(|held| held.handed)));
        }
    }
    let [(_, ours), (_, theirs)] = &taken;
    for (nth, (what, bar)) in what.iter().zip([1.0, 0.8, 1.0]).enumerate() {
        let what = what.as_ref();
        ours[nth].note(report, &format!("{what}, lockattr"), 46);
        theirs[nth].note(report, &format!("{what}, the client's recipe"), 46);
        let ratio = ours[nth].over(&theirs[nth]);
        report.bar(&format!("{what} over the recipe's, p50"), ratio, "x", Bar::AtMost(bar));
    }
}
