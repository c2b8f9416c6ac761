//! The system checks whether the host at the other end of a connection still exists.
#![cfg(target_os = "linux")]

use std::fs;

use lockattr_tests::{Wire, eventually, with_query};

use super::{Database, acquire, manager};

/// The timers of this system's connections to this port: a kind, and hundredths of a second.
fn timers(port: &str) -> Vec<(u8, u64)> {
    let port = format!(":{:04X}", port.parse::<u16>().unwrap());
    let table = fs::read_to_string("/proc/net/tcp").expect("a list of connections");
    let mut timers = Vec::new();
    for line in table.lines().skip(1) {
        let words: Vec<_> = line.split_whitespace().collect();
        // The remote address, and the state `ESTABLISHED`.
        if words[2].ends_with(&port) && words[3] == "01" {
            let (kind, left) = words[5].split_once(':').expect("a timer");
            let hex = |word| u64::from_str_radix(word, 16).expect("a number");
            timers.push((u8::try_from(hex(kind)).expect("a kind"), hex(left)));
        }
    }
    timers
}

/// A connection that waits in the server's queue carries no checks of ours.
///
/// Red without: `detect_vanished_host`. The system's default is two hours.
#[tokio::test]
async fn every_connection_has_keepalives_by_the_heartbeat() {
    const KEEPALIVE: u8 = 2;
    let database = Database::new().await;
    for form in ["session", "lease"] {
        let wire = Wire::start(database.server.addr()).await;
        let url = database.url.replace(&database.server.addr(), &wire.addr());
        let url = with_query(&url, &format!("lock={form}&heartbeat=20s"));
        let (here, other) = (manager(&url).await, manager(&url).await);
        let guard = acquire(&here, "a").await;
        let waits = tokio::spawn(async move { acquire(&other, "a").await.release().await });
        if form == "session" {
            database.waiting(1).await;
        }
        let addr = wire.addr();
        let (_, port) = addr.rsplit_once(':').unwrap();
        let all = async || {
            let timers = timers(port);
            let soon = |(kind, left): &(u8, u64)| *kind == KEEPALIVE && *left <= 2_100;
            timers.len() >= 4 && timers.iter().all(soon)
        };
        eventually("keepalives on all connections", all).await;
        guard.release().await.unwrap();
        waits.await.unwrap().unwrap();
    }
}
