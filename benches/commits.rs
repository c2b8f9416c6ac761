//! Servers whose commits wait for a slow disk.

use std::time::Duration;

use lockattr_tests::{MariaDb, PostgresServer};
use mysql_async::prelude::Queryable;
use tokio::time::{Instant, sleep};

use crate::spread::Spread;

/// How long a commit takes on the slow disk.
pub(crate) const SLOW: Duration = Duration::from_millis(5);

/// The number of commits that measure the disk.
const COMMITS: usize = 21;

/// Makes each commit of this server take [`SLOW`], and returns the time of one in milliseconds, as
/// a client measures it.
///
/// A commit writes to the disk (`fsync`), after a pause that makes up for what this machine's disk
/// is too fast (`commit_delay`, also without other transactions: `commit_siblings = 0`).
pub(crate) async fn slow_down(server: &PostgresServer) -> Spread {
    set(server, "commit_siblings", "0").await;
    set(server, "fsync", "on").await;
    server.run("create table if not exists commits (nth int)").await;
    // The least time: the disk may be busy now, and less so later.
    let flush = Duration::from_secs_f64(commit_millis(server).await.min / 1e3);
    let missing = SLOW.saturating_sub(flush).as_micros();
    set(server, "commit_delay", &missing.to_string()).await;
    commit_millis(server).await
}

/// Sets a parameter, and returns once new sessions have it.
async fn set(server: &PostgresServer, name: &str, value: &str) {
    server.run(&format!("alter system set {name} = '{value}'")).await;
    server.run("select pg_reload_conf()").await;
    loop {
        let shown = server.client().await.query_one(&format!("show {name}"), &[]).await;
        if shown.expect("a parameter").get::<_, &str>(0) == value {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

async fn commit_millis(server: &PostgresServer) -> Spread {
    let (client, mut taken) = (server.client().await, Vec::new());
    for _ in 0..COMMITS {
        let began = Instant::now();
        client.execute("insert into commits values (1)", &[]).await.expect("a commit");
        taken.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Spread::of(taken).expect("there was a commit")
}

/// Starts a MariaDB or MySQL with an empty database `bench`, whose commits write a binary log to
/// the disk, 5 ms after they begin. Also returns the time of a commit in milliseconds.
pub(crate) async fn slow_mysql() -> (MariaDb, Spread) {
    let usual = ["--log-bin=binary", "--server-id=1", "--sync-binlog=1"];
    let delay = match MariaDb::runs_mysql() {
        true => &["--binlog-group-commit-sync-delay=5000"][..],
        // The server waits for this time or this number of commits.
        false => &["--binlog-commit-wait-usec=5000", "--binlog-commit-wait-count=100000"],
    };
    let server = MariaDb::with(&[&usual[..], delay].concat()).await;
    server.execute("mysql", "CREATE DATABASE bench").await;
    server.execute("bench", "CREATE TABLE commits (nth INT)").await;
    let (mut cli, mut taken) = (server.cli("bench").await, Vec::new());
    for _ in 0..COMMITS {
        let began = Instant::now();
        cli.query_drop("INSERT INTO commits VALUES (1)").await.expect("a commit");
        taken.push(began.elapsed().as_secs_f64() * 1e3);
    }
    (server, Spread::of(taken).expect("there was a commit"))
}
