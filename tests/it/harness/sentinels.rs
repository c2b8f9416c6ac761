//! Tests of the harness' sentinels: discovery, failover and restart.

use lockattr_tests::{RedisServer, Sentinels, assert_nobody_listens, assert_nothing_left};

#[tokio::test]
async fn they_are_ready_at_once_and_fail_over_when_the_master_dies() {
    let sentinels = Sentinels::start().await;
    let old = sentinels.master().await;
    assert_eq!(sentinels.replicas().await.len(), 2);
    let cli = old.cli().await;
    cli.query::<()>(&["SET", "lock:fence", "7"]).await;
    assert_eq!(cli.query::<usize>(&["WAIT", "2", "100000"]).await, 2);

    old.kill();
    let new = sentinels.failed_over(old).await;
    assert_ne!(new.addr(), old.addr());
    assert_eq!(sentinels.master().await.addr(), new.addr());
    assert_eq!(new.cli().await.value("lock:fence").await.as_deref(), Some("7"));
    new.cli().await.query::<()>(&["SET", "lock:fence", "8"]).await;

    old.revive().await;
    sentinels.settled().await;
    assert_eq!(old.cli().await.value("lock:fence").await.as_deref(), Some("8"));
    assert_nothing_left(&sentinels).await;
    assert_nobody_listens(&sentinels).await;
}

#[tokio::test]
async fn a_paused_master_is_replaced_and_so_is_a_healthy_one() {
    let sentinels = Sentinels::builder().replicas(1).start().await;
    let first = sentinels.master().await;
    first.stop_signal();
    let second = sentinels.failed_over(first).await;
    first.continue_signal();
    sentinels.settled().await;
    assert_eq!(sentinels.switch_over().await.addr(), first.addr());
    assert_ne!(second.addr(), first.addr());
}

/// As a sentinel does that has not heard of the last failover.
///
/// Red without: `is_followed`.
#[tokio::test]
async fn a_master_that_was_made_a_replica_is_replaced() {
    let sentinels = Sentinels::builder().replicas(1).start().await;
    let master = sentinels.master().await;
    let [replica] = sentinels.replicas().await[..] else { unreachable!("one replica") };
    let port = replica.addr().replace("127.0.0.1:", "");
    replica.cli().await.query::<()>(&["REPLICAOF", "NO", "ONE"]).await;
    master.cli().await.query::<()>(&["REPLICAOF", "127.0.0.1", &port]).await;
    assert_eq!(sentinels.failed_over(replica).await.addr(), master.addr());
    sentinels.settled().await;
}

#[tokio::test]
async fn two_sentinels_of_three_are_enough() {
    let sentinels = Sentinels::builder().replicas(1).start().await;
    sentinels.sentinels()[0].kill();
    let old = sentinels.master().await;
    old.kill();
    sentinels.failed_over(old).await;
}

#[tokio::test]
async fn servers_and_sentinels_have_passwords_of_their_own() {
    let server = RedisServer::builder().password("s:@ß\"");
    let builder = Sentinels::builder().servers(server).sentinel_password("watch\"");
    let sentinels = builder.replicas(1).start().await;
    assert!(sentinels.url().starts_with("redis+sentinel://:s%3A%40%C3%9F%22@127.0.0.1:"));
    assert!(sentinels.url_with("ttl=1s").contains("/lockattr?"));
    for server in [&sentinels.sentinels()[0], sentinels.master().await] {
        let stranger = redis::Client::open(format!("redis://{}/", server.addr())).unwrap();
        let mut stranger = super::connect(&stranger).await.unwrap();
        let error = redis::cmd("PING").query_async::<()>(&mut stranger).await.unwrap_err();
        assert_eq!(error.code(), Some("NOAUTH"), "{error}");
    }
    let old = sentinels.master().await;
    old.kill();
    sentinels.failed_over(old).await;
    old.revive().await;
    sentinels.settled().await;
}
