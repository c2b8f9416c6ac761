//! PostgreSQL, compared with a session's advisory lock and with a bare row, on `tokio-postgres`.
//!
//! On a server whose commits take no time, and on one whose commits wait 5 ms for the disk.

mod ways;

use std::time::Duration;

use lockattr_tests::{Engine, PostgresServer};

use crate::commits;
use crate::rates::{Load, in_turn};
use crate::report::{Bar, Report};
use ways::Way;

/// Short and in turn, because noise comes and goes.
const ROUND: Duration = Duration::from_millis(100);

/// The same with slow commits, of which this has a hundred.
const SLOW_ROUND: Duration = Duration::from_millis(500);

/// Tasks that have a key each.
const MANY: usize = 256;

/// The connections that such tasks share by hand: as many as a manager has by default.
const CONNECTIONS: usize = 2;

/// Hand-offs between eight clients over those of advisory locks: 2.5 times what they were while the
/// server ran a function for each request.
const FASTER: f64 = 0.225;

/// Hot keys, and the processes that all want each of them.
const HOT_KEYS: usize = 16;
const HOT_CLIENTS: usize = 4;

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("postgres", "PostgreSQL: free locks, many keys, hand-offs, beside SQL by hand");
    let server = PostgresServer::start().await;
    let version = version(&server).await;
    report.server(&format!("PostgreSQL {version}"));
    let times = (time, ROUND);
    free(report, &server, times).await;
    free_session(report, &server, times).await;
    many(report, &server, times, Bar::AtLeast(3.0)).await;
    for (clients, bar) in [(2, None), (8, Some(Bar::AtLeast(FASTER)))] {
        hand_offs(report, &server, times, clients, bar).await;
        session_hand_offs(report, &server, times, clients).await;
    }
    drop(server);

    let server = PostgresServer::start().await;
    let commit = commits::slow_down(&server).await;
    report.server(&format!("PostgreSQL {version}, slow commits"));
    report.figure("a commit by hand", commit, "ms");
    let times = (time, SLOW_ROUND);
    slow_free(report, &server, times).await;
    many(report, &server, times, Bar::AtLeast(20.0)).await;
    hot_keys(report, &server, times).await;
}

async fn version(server: &PostgresServer) -> String {
    let client = server.client().await;
    let shown = client.query_one("show server_version", &[]).await.expect("a version");
    let shown: &str = shown.get(0);
    shown.split_whitespace().next().unwrap_or_default().to_owned()
}

async fn free(report: &mut Report, server: &PostgresServer, times: (Duration, Duration)) {
    let (ours, advisory, rows) =
        (Way::ours(server, 1).await, Way::advisory(server, 1).await, Way::rows(server, 1).await);
    let loads = [&ours, &advisory, &rows].map(|clients| Load::one_key(clients));
    let [ours, advisory, row] = in_turn(loads, times).await;
    report.note("a free lock, one task");
    ours.note(report, "lockattr");
    advisory.note(report, "pg_advisory_lock, pg_advisory_unlock");
    row.note(report, "insert … on conflict, delete");
    report.bar("free lock over a bare row", ours.over(&row), "x", Bar::AtLeast(0.9));
    let over = ours.over(&advisory);
    report.bar("free lock over advisory locks", over, "x", Bar::AtLeast(0.55));
    // A lease cannot cost less than its row.
    report.figure("a bare row over advisory locks", row.over(&advisory), "x");
}

async fn slow_free(report: &mut Report, server: &PostgresServer, times: (Duration, Duration)) {
    let (ours, rows) = (Way::ours(server, 1).await, Way::rows(server, 1).await);
    let [ours, row] = in_turn([&ours, &rows].map(|clients| Load::one_key(clients)), times).await;
    ours.note(report, "lockattr, one task");
    row.note(report, "insert … on conflict, delete");
    report.bar("free lock over a bare row", ours.over(&row), "x", Bar::AtLeast(0.9));
}

async fn free_session(report: &mut Report, server: &PostgresServer, times: (Duration, Duration)) {
    let (ours, advisory) = (Way::sessions(server, 1).await, Way::advisory(server, 1).await);
    let loads = [&ours, &advisory].map(|clients| Load::one_key(clients));
    let [ours, advisory] = in_turn(loads, times).await;
    ours.note(report, "lockattr, lock=session");
    advisory.note(report, "pg_advisory_lock, pg_advisory_unlock");
    let over = ours.over(&advisory);
    report.bar("lock=session, free lock over advisory locks", over, "x", Bar::AtLeast(0.9));
}

/// One manager, beside the same number of connections by hand, which send without waiting for the
/// answers to earlier statements.
async fn many(report: &mut Report, server: &PostgresServer, times: (Duration, Duration), bar: Bar) {
    let (ours, rows) = (Way::ours(server, 1).await, Way::rows(server, CONNECTIONS).await);
    let loads = [&ours, &rows].map(|clients| Load::own_keys(clients, MANY));
    let [ours, row] = in_turn(loads, times).await;
    report.note(&format!("{MANY} tasks on {MANY} keys"));
    ours.note(report, "lockattr");
    row.note(report, &format!("insert …, delete, {CONNECTIONS} connections"));
    report.bar(&format!("{MANY} keys over bare rows"), ours.over(&row), "x", bar);
}

async fn hand_offs(
    report: &mut Report,
    server: &PostgresServer,
    times: (Duration, Duration),
    clients: usize,
    bar: Option<Bar>,
) {
    let (ours, advisory) = (Way::ours(server, clients).await, Way::advisory(server, clients).await);
    let loads = [&ours, &advisory].map(|clients| Load::one_key(clients));
    let [ours, advisory] = in_turn(loads, times).await;
    report.note(&format!("{clients} clients, one key"));
    advisory.note(report, "pg_advisory_lock, pg_advisory_unlock");
    report.figure(&format!("{clients} clients: hand-offs"), ours.spread(), "a second");
    let what = format!("{clients} clients: hand-offs over advisory locks");
    let over = ours.over(&advisory);
    match bar {
        Some(bar) => report.bar(&what, over, "x", bar),
        None => report.figure(&what, over, "x"),
    }
}

async fn session_hand_offs(
    report: &mut Report,
    server: &PostgresServer,
    times: (Duration, Duration),
    clients: usize,
) {
    let (ours, advisory) =
        (Way::sessions(server, clients).await, Way::advisory(server, clients).await);
    let loads = [&ours, &advisory].map(|clients| Load::one_key(clients));
    let [ours, advisory] = in_turn(loads, times).await;
    ours.note(report, "lockattr, lock=session");
    advisory.note(report, "pg_advisory_lock, pg_advisory_unlock");
    let what = format!("{clients} clients, lock=session: hand-offs over advisory locks");
    report.bar(&what, ours.over(&advisory), "x", Bar::AtLeast(1.0));
}

async fn hot_keys(report: &mut Report, server: &PostgresServer, times: (Duration, Duration)) {
    let ours = Way::ours(server, HOT_CLIENTS).await;
    let [ours] = in_turn([Load::hot_keys(&ours, HOT_KEYS)], times).await;
    let what = format!("{HOT_KEYS} hot keys, {HOT_CLIENTS} clients each: hand-offs");
    report.bar(&what, ours.spread(), "a second", Bar::AtLeast(600.0));
}
