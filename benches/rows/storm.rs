//! Storms: up to 10,000 tasks of one process at once, each with a key of its own, beside locks
//! that the process renews.

mod cell;

use std::time::Duration;

use lockattr_tests::{
    Engine, Etcd, MariaDb, PostgresServer, RedisServer, ZooKeeper, bare, with_query,
};

use crate::commits;
use crate::report::{Bar, Report};
use cell::Cell;

const TASKS: [usize; 3] = [100, 1_000, 10_000];

/// Measures all engines, or those whose names contain `only`.
pub(super) async fn measure(report: &mut Report, time: Duration, only: Option<&str>) {
    report.row("storm", "100 to 10,000 tasks at once, a key each, beside 20 renewed locks");
    let asked = |name: &str| only.is_none_or(|only| name.contains(only));
    if asked("memory") {
        storm(report, "memory", "memory://", time).await;
    }
    if asked("redis") {
        on::<RedisServer>(report, "redis", time).await;
    }
    if asked("postgres") {
        let server = PostgresServer::start().await;
        postgres(report, &server, "", time).await;
        let commit = commits::slow_down(&server).await;
        report.server("postgres, slow commits");
        report.figure("a commit by hand", commit, "ms");
        postgres(report, &server, ", slow commits", time).await;
    }
    if asked("mysql") {
        let server = MariaDb::start().await;
        mysql(report, &bare(&server.url()), "", time).await;
        let (server, commit) = commits::slow_mysql().await;
        report.server("mysql, slow commits");
        report.figure("a commit by hand", commit, "ms");
        mysql(report, &bare(&server.url_of("bench")), ", slow commits", time).await;
    }
    if asked("zookeeper") {
        on::<ZooKeeper>(report, "zookeeper", time).await;
    }
    if asked("etcd") {
        on::<Etcd>(report, "etcd", time).await;
    }
}

async fn postgres(report: &mut Report, server: &PostgresServer, suffix: &str, time: Duration) {
    storm(report, &format!("postgres{suffix}"), &bare(&server.url()), time).await;
    let url = bare(&server.url_with("lock=session"));
    storm(report, &format!("postgres, lock=session{suffix}"), &url, time).await;
}

async fn mysql(report: &mut Report, url: &str, suffix: &str, time: Duration) {
    storm(report, &format!("mysql{suffix}"), url, time).await;
    storm(report, &format!("mysql, lock=session{suffix}"), &with_query(url, "lock=session"), time)
        .await;
}

async fn on<E: Engine>(report: &mut Report, name: &str, time: Duration) {
    let server = E::start().await;
    // Only the renewed locks have a short TTL, except where all locks of a session have one.
    let of_a_session = E::SHORT.contains("session_timeout");
    let url = if of_a_session { bare(&server.url_with(E::SHORT)) } else { bare(&server.url()) };
    storm(report, name, &url, time).await;
}

async fn storm(report: &mut Report, name: &str, url: &str, time: Duration) {
    report.server(name);
    let mut cells = Vec::new();
    for tasks in TASKS {
        let cell = Cell::measure(url, tasks, time).await;
        report.figure(&format!("{tasks} tasks: acquisitions"), cell.rate, "a second");
        report.note(&format!("    {cell}"));
        cells.push(cell);
    }
    let total = |count: fn(&Cell) -> usize| cells.iter().map(count).sum::<usize>() as f64;
    report.figure("acquires without a lock: the store failed", total(|cell| cell.store), "");
    report.figure("acquires without a lock: contended", total(|cell| cell.contended), "");
    let none = Bar::AtMost(0.0);
    report.bar("releases that failed", total(|cell| cell.releases), "", none);
    report.bar("renewed locks that were lost", total(|cell| cell.lost), "", none);
    // Storms that keep the client busy cost it a little more for each task: the memory store shows
    // how much.
    let [least, more @ ..] = &cells[..] else { return };
    for cell in more {
        let what = format!("rate with {} tasks over {}", cell.tasks, least.tasks);
        report.bar(&what, cell.rate / least.rate, "x", Bar::AtLeast(0.9));
    }
}
