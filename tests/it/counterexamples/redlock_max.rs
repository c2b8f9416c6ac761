//! A fencing token that goes backwards.

use lockattr_tests::{Independents, Proxy, RedisServer, eventually};

use super::stage::{Client, OURS, Stage};

pub(super) const REPORTED: &[&str] = &["a smaller fencing token later"];

/// Makes these servers unreachable. Clients get an error.
async fn away(proxies: &[Proxy], indices: &[usize]) {
    for number in indices {
        proxies[*number].refuse().await;
        proxies[*number].cut().await;
    }
}

async fn accept_again(proxies: &[Proxy], indices: &[usize]) {
    for number in indices {
        proxies[*number].accept().await;
    }
}

/// Starts three servers that persist their counters.
async fn durable() -> Independents {
    let server = RedisServer::builder().appendonly();
    Independents::builder().count(3).servers(server).start().await
}

/// Two attempts reach only the first of three servers, so its counter gets ahead. Then one client
/// reaches the first and the second. After its release, another client reaches the second and the
/// third.
async fn majorities_differ(algorithm: &str) -> Vec<String> {
    let servers = durable().await;
    let proxies = servers.proxies().await;
    let addrs = proxies.iter().map(Proxy::addr).collect();
    let mut stage = Stage::new(algorithm, addrs);
    let (first, second) = (stage.start_process(), stage.start_process());
    away(proxies, &[1, 2]).await;
    for _ in 0..2 {
        let reply = stage.order(first, "acquire").await;
        assert!(["no", "unknown"].contains(&reply.as_str()), "{algorithm}: {reply}");
    }
    accept_again(proxies, &[1]).await;
    acquire_eventually(&mut stage, first).await;
    stage.expect_success(first, "check").await;
    stage.expect_success(first, "release").await;
    away(proxies, &[0]).await;
    accept_again(proxies, &[2]).await;
    acquire_eventually(&mut stage, second).await;
    stage.expect_success(second, "check").await;
    stage.expect_success(second, "release").await;
    stage.report(&servers).await
}

/// Acquires with retries, since the outage may refuse another attempt.
async fn acquire_eventually(stage: &mut Stage<'_>, client: Client) {
    let acquires = async || stage.order(client, "acquire").await.starts_with("yes");
    eventually("it gets in", acquires).await;
}

async fn nothing_fails(algorithm: &str) -> Vec<String> {
    let servers = durable().await;
    let addrs = servers.nodes().iter().map(RedisServer::addr).collect();
    let mut stage = Stage::new(algorithm, addrs);
    let (first, second) = (stage.start_process(), stage.start_process());
    for client in [first, second, first, second] {
        stage.expect_success(client, "acquire").await;
        stage.expect_success(client, "check").await;
        stage.expect_success(client, "release").await;
    }
    stage.report(&servers).await
}

#[tokio::test]
async fn it_is_right_when_all_servers_can_be_reached() {
    assert_eq!(nothing_fails("redlock-max").await, [""; 0]);
}

#[tokio::test]
async fn a_later_holder_has_the_smaller_token() {
    assert_eq!(majorities_differ("redlock-max").await, REPORTED);
}

#[tokio::test]
async fn ours_grows_whatever_majority_is_reached() {
    assert_eq!(majorities_differ(OURS).await, [""; 0]);
    assert_eq!(nothing_fails(OURS).await, [""; 0]);
}
