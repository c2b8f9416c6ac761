//! How long a lock has no holder after its holder, its servers or its network have failed, beside
//! what the engine promises.

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, Node, Wires, bare, engines};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::report::{Bar, Report};
use crate::spread::Spread;

/// For each fault on each engine.
const RUNS: usize = 5;

/// Longer than every promise.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Until the waiter is queued, and longer than the interval between renewals.
const SETTLED: Duration = Duration::from_millis(900);

const KEY: &str = "recovery";

#[derive(Clone, Copy)]
enum Fault {
    Killed,
    Restarted,
    Cut,
}

impl Fault {
    const ALL: [Self; 3] = [Self::Killed, Self::Restarted, Self::Cut];

    fn name(self) -> &'static str {
        match self {
            Self::Killed => "holder killed (kill -9)",
            Self::Restarted => "servers restarted, then released",
            Self::Cut => "holder's network cut",
        }
    }

    /// From the fault, or from the servers' first answer after it, until the next holder has the
    /// lock.
    async fn happens<E: Engine>(self, server: &E) -> Duration {
        let waiter = LockManager::connect(bare(&server.url())).await.expect("the servers answer");
        match self {
            Self::Killed => {
                let program = std::env::current_exe().expect("this program");
                let url = bare(&server.url_with(E::SHORT));
                let words = [("url", url), ("key", KEY.to_owned())];
                let mut holder = Node::start(&program.to_string_lossy(), "hold", &words);
                assert_eq!(holder.line().await, "held");
                let next = waits(waiter).await;
                let since = Instant::now();
                holder.kill();
                got_in(next).await - since
            }
            Self::Restarted => {
                let manager = LockManager::connect(bare(&server.url())).await.expect("it answers");
                let held = manager.acquire(KEY, LockOptions::new()).await.expect("free");
                let next = waits(waiter).await;
                server.restart().await;
                let since = Instant::now();
                // A release that cannot be sent now is retried in the background.
                held.release().await.ok();
                got_in(next).await - since
            }
            Self::Cut => {
                let wires = Wires::before(server).await;
                let url = bare(&wires.url_with(E::SHORT));
                let manager = LockManager::connect(url).await.expect("the servers answer");
                let held = manager.acquire(KEY, LockOptions::new()).await.expect("free");
                let next = waits(waiter).await;
                let since = Instant::now();
                wires.cut().await;
                let got_in = got_in(next).await;
                drop(held);
                got_in - since
            }
        }
    }
}

/// Starts a waiter, which returns the instant of its acquisition.
async fn waits(manager: LockManager) -> JoinHandle<Instant> {
    let waiting = tokio::spawn(async move {
        let options = LockOptions::new().wait(WAIT_LIMIT);
        let guard = manager.acquire(KEY, options).await.expect("granted");
        let got_in = Instant::now();
        // A release without an answer is retried in the background, and the next holder waits for
        // it.
        guard.release().await.ok();
        got_in
    });
    sleep(SETTLED).await;
    waiting
}

async fn got_in(next: JoinHandle<Instant>) -> Instant {
    next.await.expect("no panic")
}

/// The process that is killed: prints `held`, and holds the lock.
pub(crate) async fn hold(url: &str, key: &str) {
    let manager = LockManager::connect(url).await.expect("the servers answer");
    let _held = manager.acquire(key, LockOptions::new().wait(WAIT_LIMIT)).await.expect("granted");
    println!("held");
    BufReader::new(stdin()).lines().next_line().await.ok();
}

pub(super) async fn measure(report: &mut Report) {
    report.row("recovery", "until the next one gets in");
    let mut table = vec![
        "| engine | what fails | median | worst | promised |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    macro_rules! each {
        ($($name:ident: $engine:ty),* $(,)?) => {
            $(table.extend(of::<$engine>(report, stringify!($name)).await);)*
        };
    }
    engines!(each);
    for line in table {
        report.note(&line);
    }
}

/// The lines of the table for one engine.
async fn of<E: Engine>(report: &mut Report, name: &str) -> Vec<String> {
    let server = E::start().await;
    let promised = E::GIVES_UP_WITHIN.as_secs_f64();
    let mut lines = Vec::new();
    for fault in Fault::ALL {
        let mut taken = Vec::new();
        for _ in 0..RUNS {
            taken.push(fault.happens(&server).await.as_secs_f64());
        }
        let Spread { median, max, .. } = Spread::of(taken).expect("there were runs");
        let what = format!("{name}: {}, worst", fault.name());
        report.bar(&what, max, "s", Bar::AtMost(promised));
        let what = fault.name();
        lines.push(format!("| {name} | {what} | {median:.2} s | {max:.2} s | {promised} s |"));
    }
    lines
}
