//! The fencing counter: plain commands increment it, and several faults may set it back.

use lockattr_tests::Proxy;

use super::*;

/// Whether a script, which reads the server's clock, counts this manager's next acquisition.
async fn counts_by_script(cli: &Cli, manager: &LockManager) -> bool {
    let before = calls(cli, "incr").await;
    round(manager).await;
    calls(cli, "incr").await == before
}

#[tokio::test]
async fn a_counter_that_was_lost_is_raised_to_the_clock() {
    let server = RedisServer::start().await;
    let (cli, one, other) =
        (server.cli().await, manager(&server, PATIENT).await, manager(&server, PATIENT).await);
    let last = round(&one).await.max(round(&other).await);
    for _ in 0..3 {
        let deleted: u32 = cli.query(&["DEL", "lockattr:fence"]).await;
        assert_eq!(deleted, 1);
        // The counter restarts from nothing.
        for manager in [&one, &other] {
            let token = round(manager).await;
            assert!(token > last, "{token} after {last}");
        }
    }
    assert_nothing_left(&server).await;
}

/// A proxy may replace a server by another one that lacks its last numbers, without a visible
/// change.
#[tokio::test]
async fn a_token_that_was_seen_before_is_discarded() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server, PATIENT).await);
    round(&manager).await;
    let early = cli.value("lockattr:fence").await.unwrap();
    let last = [round(&manager).await, round(&manager).await, round(&manager).await];
    cli.query::<()>(&["SET", "lockattr:fence", &early]).await;
    let token = round(&manager).await;
    assert!(token > last[2], "{token} after {last:?}");
    assert_nothing_left(&server).await;
}

/// A restart or a failover comes with a new connection.
#[tokio::test]
async fn a_new_connection_counts_by_a_script_first() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), PATIENT);
    let (cli, manager) = (server.cli().await, LockManager::connect(url).await.unwrap());
    assert!(counts_by_script(&cli, &manager).await);
    assert!(!counts_by_script(&cli, &manager).await);
    for _ in 0..2 {
        proxy.cut().await;
        // The first acquisition over a new connection.
        manager.acquire("b", LockOptions::new()).await.unwrap().release().await.unwrap();
        assert!(!counts_by_script(&cli, &manager).await);
    }
    drop(manager);
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_heartbeat_later_a_script_counts_again() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server, "heartbeat=50ms").await);
    assert!(counts_by_script(&cli, &manager).await);
    let again = async || counts_by_script(&cli, &manager).await;
    eventually("a script counts", again).await;
    eventually("and again", again).await;
    assert_nothing_left(&server).await;
}

/// With this right a free lock costs less; without it everything still works.
#[tokio::test]
async fn a_user_without_the_right_to_incr_uses_scripts() {
    let rights = crate::redis::RIGHTS.replace(" +incr ", " ");
    let server = RedisServer::builder().user("locker", "s3cret", &rights).start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(server.url_as("locker", "s3cret")).await.unwrap();
    let mut last = 0;
    for _ in 0..10 {
        let token = round(&manager).await;
        assert!(token > last);
        last = token;
    }
    assert_eq!(calls(&cli, "incr").await, 0);
    let stats: String = cli.query(&["INFO", "commandstats"]).await;
    let rejected = stats.lines().find(|line| line.starts_with("cmdstat_incr:")).unwrap_or("");
    let refusals = rejected.split("rejected_calls=").nth(1).and_then(|rest| rest.split(',').next());
    assert_eq!(refusals, Some("1"), "{rejected}");
    assert_nothing_left(&server).await;
}
