//! MariaDB and MySQL: leases and session locks, compared with SQL sent by hand, in the same run.

mod ways;

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use lockattr_tests::{MariaDb, bare, with_query};
use tokio::time::Instant;

use crate::rates::{self, Load};
use crate::report::{Bar, Report};
use crate::taken::{Taken, in_turn};
use ways::{TABLE, Way};

/// Short and in turn, because noise comes and goes.
const ROUND: Duration = Duration::from_millis(50);

/// Hand-offs in one round.
const HAND_OFFS: usize = 10;

const KEYS: u64 = 64;

/// Tasks that have a key each.
const MANY: usize = 256;

/// The connections that such tasks share by hand: as many as a manager has by default.
const CONNECTIONS: usize = 2;

const NAMES: [&str; 4] =
    ["lockattr, lease", "lockattr, lock=session", "GET_LOCK by hand", "table by hand"];

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("mysql", "MariaDB and MySQL: leases and session locks, beside SQL by hand");
    on(report, MariaDb::with(&[]).await, time).await;
    match MariaDb::newest_mysql(&[]).await {
        Some(server) => on(report, server, time).await,
        None => report.no_server("the newest MySQL: set LOCKATTR_NEWEST_MYSQL"),
    }
}

async fn on(report: &mut Report, server: MariaDb, time: Duration) {
    server.execute("mysql", "CREATE DATABASE bench").await;
    server.execute("bench", TABLE).await;
    let version: String = server.query("bench", "SELECT VERSION()").await.remove(0);
    let is_mysql = !version.contains("MariaDB");
    let number = version.split('-').next().unwrap_or_default();
    report.server(&format!("{} {number}", if is_mysql { "MySQL" } else { "MariaDB" }));

    let url = bare(&server.url_of("bench"));
    let lease = Way::ours(&url).await;
    let session = Way::ours(&with_query(&url, "lock=session")).await;
    let get_lock = Way::get_lock(&server).await;
    let tables = Way::tables(&server, CONNECTIONS).await;

    let rounds = usize::try_from(time.as_nanos() / ROUND.as_nanos()).unwrap_or(3).max(3);
    let all = in_turn([&lease, &session, &get_lock, &tables[0]], rounds, cycles).await;
    note(report, "a free lock, acquired and released", &all);
    let [by_lease, by_session, by_get_lock, by_table] = &all;
    if cfg!(feature = "tls") && is_mysql {
        over_tls(report, &url, (rounds, time)).await;
    }
    let bar = Bar::AtMost(if is_mysql { 1.3 } else { 1.2 });
    report.bar("free lock: lease over a table by hand", by_lease.over(by_table), "x", bar);
    // The rate is the inverse of the time.
    let rate = by_get_lock.over(by_session);
    report.bar("free lock: rate of lock=session over GET_LOCK", rate, "x", Bar::AtLeast(0.9));

    let all = in_turn([&lease, &session, &get_lock], rounds.min(40), hand_offs).await;
    note(report, "from one client to another that waits", &all);
    let [by_lease, by_session, by_get_lock] = &all;
    let over = by_session.over(by_get_lock);
    report.bar("hand-off: lock=session over GET_LOCK", over, "x", Bar::AtMost(1.5));
    let over = by_lease.over(by_get_lock);
    report.bar("hand-off: lease over GET_LOCK", over, "x", Bar::AtMost(4.5));

    let lease = [lease];
    let loads = [&lease[..], &tables].map(|clients| Load::own_keys(clients, MANY));
    let [ours, table] = rates::in_turn(loads, (time, 2 * ROUND)).await;
    report.note(&format!("{MANY} tasks on {MANY} keys"));
    ours.note(report, NAMES[0]);
    table.note(report, &format!("{}, {CONNECTIONS} connections", NAMES[3]));
    let what = format!("{MANY} keys: rate over tables by hand");
    report.bar(&what, ours.over(&table), "x", Bar::AtLeast(3.0));
}

/// What TLS costs, with the relay inside the process that it goes through. A MySQL makes a
/// certificate for itself.
async fn over_tls(report: &mut Report, url: &str, (rounds, time): (usize, Duration)) {
    let ways = ["required", "disabled"].map(|mode| with_query(url, &format!("ssl-mode={mode}")));
    let [tls, plaintext] = [Way::ours(&ways[0]).await, Way::ours(&ways[1]).await];
    let all = in_turn([&tls, &plaintext], rounds, cycles).await;
    report.note("the same, over TLS and in plaintext");
    for (taken, name) in all.iter().zip(["lockattr, TLS", "lockattr, plaintext"]) {
        taken.note(report, name, 40);
    }
    let [by_tls, by_plaintext] = &all;
    report.bar("free lock: TLS over plaintext", by_tls.over(by_plaintext), "x", Bar::AtMost(1.5));

    let (tls, plaintext) = ([tls], [plaintext]);
    let loads = [&tls[..], &plaintext].map(|clients| Load::own_keys(clients, MANY));
    let [by_tls, by_plaintext] = rates::in_turn(loads, (time, 2 * ROUND)).await;
    by_tls.note(report, &format!("{MANY} tasks, TLS"));
    by_plaintext.note(report, &format!("{MANY} tasks, plaintext"));
    let what = format!("{MANY} keys: rate over TLS over plaintext");
    report.bar(&what, by_tls.over(&by_plaintext), "x", Bar::AtLeast(0.7));
}

fn note(report: &mut Report, what: &str, all: &[Taken]) {
    report.note(what);
    for (taken, name) in all.iter().zip(NAMES) {
        taken.note(report, name, 40);
    }
}

/// In its own task, as a service handles a request.
async fn cycles(way: &Arc<Way>) -> Histogram<u64> {
    let way = way.clone();
    let work = async move {
        let mut taken = Histogram::new(3).expect("three digits");
        let (ends, mut key) = (Instant::now() + ROUND, 0);
        while Instant::now() < ends {
            let began = Instant::now();
            way.cycle(key % KEYS).await;
            taken.record(nanos(began.elapsed())).expect("it resizes");
            key += 1;
        }
        taken
    };
    tokio::spawn(work).await.expect("no panic")
}

async fn hand_offs(way: &Arc<Way>) -> Histogram<u64> {
    let way = way.clone();
    let work = async move {
        let mut taken = Histogram::new(3).expect("three digits");
        for _ in 0..HAND_OFFS {
            taken.record(nanos(way.hand_off().await)).expect("it resizes");
        }
        taken
    };
    tokio::spawn(work).await.expect("no panic")
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
