//! Single-flight: 1,000 callers miss one cache entry at once, in 20 processes and in one.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use lockattr::{Lease, LockManager, LockOptions};
use lockattr_tests::{Node, bare};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::time::{Instant, sleep};

use crate::report::{Bar, Report};
use crate::servers::Engine;
use crate::spread::Spread;

const CALLERS: usize = 1_000;
const PROCESSES: usize = 20;

/// As a query of a database that is worth a cache.
const BODY: Duration = Duration::from_millis(200);

/// How often the entry is missed.
const FLIGHTS: usize = 10;

pub(super) async fn measure(report: &mut Report) {
    report.row("flight", "1,000 callers of one missing entry: the result of one body of 200 ms");
    let local = alone().await;
    for engine in Engine::ALL {
        let Some(started) = engine.start(report).await else { continue };
        let (fleet, runs) = fleet(&bare(&started.server.url_with("prefix=flight:"))).await;
        report.bar("bodies that ran in a flight", runs, "", Bar::AtMost(1.0));
        report.figure("p99 of a caller, one process without a store", local, "ms");
        report.figure("p99 of a caller, 20 processes with `share_result`", fleet, "ms");
        let ratio = fleet.median / local.median;
        report.bar("p99 over that of a local single-flight", ratio, "x", Bar::AtMost(1.25));
    }
}

/// The p99 of each flight, where all callers are tasks of this process and share one future.
async fn alone() -> Spread {
    let mut all = Vec::new();
    for _ in 0..FLIGHTS {
        let shared = sleep(BODY).map(|()| 1_u64).shared();
        let calls = (0..CALLERS).map(|_| {
            let (shared, began) = (shared.clone(), Instant::now());
            tokio::spawn(async move {
                shared.await;
                began.elapsed()
            })
        });
        let times = join_all(calls).await.into_iter().map(|time| time.expect("no panic")).collect();
        all.push(p99(times));
    }
    Spread::of(all).expect("flights")
}

/// The p99 of each flight over all processes, and the number of bodies that ran in one.
async fn fleet(url: &str) -> (Spread, Spread) {
    let program = std::env::current_exe().expect("this program");
    let words = [("url", url.to_owned())];
    let start = || Node::start(&program.to_string_lossy(), "flight", &words);
    let mut nodes: Vec<Node> = (0..PROCESSES).map(|_| start()).collect();
    for node in &mut nodes {
        assert_eq!(node.line().await, "ready");
    }
    let (mut all, mut runs) = (Vec::new(), Vec::new());
    for flight in 0..FLIGHTS {
        for node in &mut nodes {
            node.say(&format!("entry:{flight}")).await;
        }
        let (mut times, mut ran) = (Vec::new(), 0.0);
        for node in &mut nodes {
            let line = node.line().await;
            let mut numbers =
                line.split(' ').map(|number| number.parse::<u64>().expect("a number"));
            ran += numbers.next().expect("the runs") as f64;
            times.extend(numbers.map(Duration::from_micros));
        }
        all.push(p99(times));
        runs.push(ran);
    }
    (Spread::of(all).expect("flights"), Spread::of(runs).expect("flights"))
}

/// One process of the fleet: for each key on stdin, its callers ask at once. Prints how many bodies ran, and how
/// long each caller took.
pub(crate) async fn callers(url: &str) {
    let manager = LockManager::connect(url).await.expect("the server answers");
    println!("ready");
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(key)) = lines.next_line().await {
        let calls = (0..CALLERS / PROCESSES).map(|_| {
            let (manager, key) = (manager.clone(), key.clone());
            tokio::spawn(async move {
                let (began, mut ran) = (Instant::now(), 0);
                let body = async |_: &Lease| {
                    ran = 1;
                    sleep(BODY).await;
                    Ok::<u64, String>(1)
                };
                let options = LockOptions::new().wait(BODY * 50);
                let got = manager.with_shared_result(key, options, body).await;
                got.expect("granted").expect("a value");
                (ran, began.elapsed())
            })
        });
        let called: Vec<_> =
            join_all(calls).await.into_iter().map(|call| call.expect("no panic")).collect();
        let runs: u32 = called.iter().map(|(ran, _)| ran).sum();
        let times = called.iter().map(|(_, time)| format!(" {}", time.as_micros()));
        println!("{runs}{}", times.collect::<String>());
    }
}

fn p99(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[(times.len() * 99).div_ceil(100) - 1].as_secs_f64() * 1e3
}
