//! A majority of five servers, compared with one of them and with `rslock` on the same five; with
//! two of them down, and over a network.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Independents, Proxy, RedisServer, bare, eventually, with_query};
use tokio::time::Instant;

use super::NETWORK;
use crate::report::{Bar, Report};
use crate::taken::{self, Taken};

/// Short and in turn, because noise comes and goes.
const ROUND: Duration = Duration::from_millis(50);
/// The number of keys used in turn, so that no counter is used twice in a row.
const KEYS: u64 = 64;

enum Way {
    Ours(LockManager),
    Rslock(rslock::LockManager),
}

impl Way {
    async fn to(url: &str) -> Arc<Self> {
        Arc::new(Self::Ours(LockManager::connect(url).await.expect("the servers answer")))
    }

    async fn hold(&self, key: u64) -> Duration {
        let began = Instant::now();
        match self {
            Self::Ours(manager) => {
                let key = format!("ours:{key}");
                let guard = manager.acquire(&key, LockOptions::new()).await.expect("free");
                let taken = began.elapsed();
                guard.release().await.expect("ours");
                taken
            }
            Self::Rslock(manager) => {
                let ttl = Duration::from_secs(10);
                let key = format!("rslock:{key}");
                let lock = manager.lock(key.as_bytes(), ttl).await.expect("free");
                let taken = began.elapsed();
                manager.unlock(&lock).await;
                taken
            }
        }
    }
}

/// In its own task, as a service handles a request.
async fn round(way: &Arc<Way>) -> Histogram<u64> {
    let way = way.clone();
    let holds = async move {
        let mut taken = Histogram::new(3).expect("three digits");
        let ends = Instant::now() + ROUND;
        let mut key = 0;
        while Instant::now() < ends {
            let nanos = way.hold(key % KEYS).await.as_nanos();
            taken.record(u64::try_from(nanos).unwrap_or(u64::MAX)).expect("it resizes");
            key += 1;
        }
        taken
    };
    tokio::spawn(holds).await.expect("no panic")
}

/// All in turn, for `time` each.
async fn in_turn<const N: usize>(ways: [&Arc<Way>; N], time: Duration) -> [Taken; N] {
    let rounds = (time.as_nanos() / ROUND.as_nanos()).max(3);
    taken::in_turn(ways, rounds.try_into().unwrap_or(usize::MAX), round).await
}

fn note(report: &mut Report, name: &str, taken: &Taken) {
    let [p50, p99] = [0.5, 0.99].map(|quantile| taken.micros(quantile));
    report.note(&format!("{name:<34} acquire p50 {p50:>8.1} us   p99 {p99:>8.1} us"));
}

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("quorum", "a majority of five servers, uncontended");
    let servers = Independents::start(5).await;
    let five = Way::to(&bare(&servers.url_with("durable=true"))).await;
    let one = Way::to(&bare(&servers.node(0).url())).await;
    let urls: Vec<_> = servers.nodes().iter().map(RedisServer::url).collect();
    let rslock = Arc::new(Way::Rslock(rslock::LockManager::new(urls)));
    let [ours, theirs, single] = in_turn([&five, &rslock, &one], time).await;
    note(report, "lockattr, five", &ours);
    note(report, "rslock, the same five", &theirs);
    note(report, "lockattr, one of them", &single);
    report.bar("acquire over rslock's, p50", ours.over(&theirs), "x", Bar::AtMost(1.0));

    over_a_network(report, &servers, time).await;
    trips(report, &servers).await;

    for (what, still) in [("two of five down", false), ("two of five stopped", true)] {
        let [all_up] = in_turn([&five], time).await;
        for n in [1, 3] {
            match still {
                true => servers.stop_signal(n),
                false => servers.kill(n),
            }
        }
        let [without] = in_turn([&five], time).await;
        note(report, "all five up", &all_up);
        note(report, what, &without);
        let ratio = without.micros(0.99) / all_up.micros(0.99);
        report.bar(&format!("{what}: p99 over all up"), ratio, "x", Bar::AtMost(1.5));
        for n in [1, 3] {
            match still {
                true => servers.continue_signal(n),
                false => servers.revive(n).await,
            }
        }
        round(&five).await;
    }
}

/// A network with a round-trip time of a millisecond to each server.
async fn over_a_network(report: &mut Report, servers: &Independents, time: Duration) {
    let five =
        Way::to(&with_query(&bare(&servers.url_through_proxies().await), "durable=true")).await;
    let proxies = servers.proxies().await;
    let one = Way::to(&format!("redis://{}/", proxies[0].addr())).await;
    for proxy in proxies {
        proxy.delay(NETWORK);
    }
    let [ours, single] = in_turn([&five, &one], time).await;
    report.note(&format!("{NETWORK:?} each way, by a proxy in this process:"));
    note(report, "lockattr, five", &ours);
    note(report, "lockattr, one of them", &single);
    report.bar("1 ms away: five over one, p50", ours.over(&single), "x", Bar::AtMost(1.3));
    proxies.iter().for_each(|proxy| proxy.delay(Duration::ZERO));
}

/// Commands to each server for an acquisition, its fencing token included.
async fn trips(report: &mut Report, servers: &Independents) {
    let manager =
        Way::to(&with_query(&bare(&servers.url_through_proxies().await), "durable=true")).await;
    let proxies = servers.proxies().await;
    let before: Vec<_> = proxies.iter().map(|proxy| proxy.seen("release")).collect();
    proxies.iter().for_each(Proxy::clear_log);
    const TURNS: usize = 200;
    for turn in 0..TURNS {
        manager.hold(turn as u64 % KEYS).await;
    }
    let mut most = 0;
    for (proxy, before) in proxies.iter().zip(before) {
        let all = async || proxy.seen("release") >= before + TURNS;
        eventually("each is released everywhere", all).await;
        let log = proxy.log();
        let acquires = log.iter().filter(|name| ["acquire", "renew"].contains(&name.as_str()));
        most = most.max(acquires.count());
    }
    let each = most as f64 / TURNS as f64;
    report.bar("commands to a server for an acquire", each, "", Bar::AtMost(1.0));
}
