//! Tests of the harness' Redis server: each URL works, and it can be killed, paused and restarted.

use std::time::Duration;

use lockattr_tests::{RedisServer, assert_nothing_left, eventually, left};
use redis::{Client, ErrorKind, RedisResult, TlsCertificates};

async fn ping(client: RedisResult<Client>) -> RedisResult<String> {
    let mut connection = super::connect(&client?).await?;
    redis::cmd("PING").query_async(&mut connection).await
}

async fn pings(url: String) {
    assert_eq!(ping(Client::open(url)).await.as_deref(), Ok("PONG"));
}

#[tokio::test]
async fn it_answers_by_port_and_by_socket() {
    let server = RedisServer::start().await;
    assert!(!server.addr().ends_with(":6379"));
    pings(server.url()).await;
    pings(server.unix_url()).await;
    assert!(server.url_with("ttl=1s").ends_with("&ttl=1s"));
}

#[tokio::test]
async fn ten_at_once_do_not_get_in_each_others_way() {
    let starting: Vec<_> = (0..10).map(|_| tokio::spawn(RedisServer::start())).collect();
    for (number, server) in starting.into_iter().enumerate() {
        let server = server.await.unwrap();
        let cli = server.cli().await;
        assert_eq!(cli.keys("*").await, [""; 0]);
        cli.query::<()>(&["SET", "mine", &number.to_string()]).await;
    }
}

#[tokio::test]
async fn a_password_is_asked_for_and_is_in_the_url() {
    let server = RedisServer::builder().password("p:@ß/\"w\\").start().await;
    pings(server.url()).await;
    let error = ping(Client::open(format!("redis://{}/", server.addr()))).await.unwrap_err();
    assert_eq!(error.code(), Some("NOAUTH"), "{error}");
}

#[tokio::test]
async fn a_user_may_do_what_its_rules_say() {
    let server = RedisServer::builder().user("app", "secret", "~lock:* +@all").start().await;
    let client = Client::open(server.url_as("app", "secret")).unwrap();
    let mut connection = super::connect(&client).await.unwrap();
    let () = redis::cmd("SET").arg("lock:a").arg(1).query_async(&mut connection).await.unwrap();
    let refused: RedisResult<()> =
        redis::cmd("SET").arg("other").arg(1).query_async(&mut connection).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Server(redis::ServerErrorKind::NoPerm));
}

#[tokio::test]
async fn tls_is_trusted_by_its_own_authority_only() {
    let server = RedisServer::builder().tls().start().await;
    let root_cert = Some(std::fs::read(server.ca_path()).unwrap());
    let certificates = TlsCertificates { client_tls: None, root_cert };
    let trusting = Client::build_with_tls(server.tls_url(), certificates);
    assert_eq!(ping(trusting).await.as_deref(), Ok("PONG"));
    let error = ping(Client::open(server.tls_url())).await.unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn killed_it_refuses_and_restarted_it_has_forgotten_all() {
    let server = RedisServer::start().await;
    server.cli().await.query::<()>(&["SET", "lock:a", "theirs"]).await;
    server.kill();
    assert!(ping(Client::open(server.url())).await.is_err());
    server.restart().await;
    assert_eq!(server.cli().await.value("lock:a").await, None);
}

#[tokio::test]
async fn it_keeps_its_data_when_asked_to() {
    let server = RedisServer::start().await;
    server.cli().await.query::<()>(&["SET", "lock:a", "theirs"]).await;
    server.restart_with_data().await;
    assert_eq!(server.cli().await.value("lock:a").await.as_deref(), Some("theirs"));
    server.restart().await;
    assert_eq!(server.cli().await.value("lock:a").await, None);
}

#[tokio::test]
async fn with_an_append_only_file_a_crash_loses_nothing() {
    let server = RedisServer::builder().appendonly().start().await;
    server.cli().await.query::<()>(&["SET", "lock:a", "theirs"]).await;
    server.kill();
    server.revive().await;
    assert_eq!(server.cli().await.value("lock:a").await.as_deref(), Some("theirs"));
}

#[tokio::test]
async fn it_waits_for_its_port() {
    let server = RedisServer::start().await;
    server.kill();
    let squatter = std::net::TcpListener::bind(server.addr()).unwrap();
    let early = tokio::time::timeout(Duration::from_millis(200), server.revive()).await;
    assert!(early.is_err(), "another process listens on its port");
    drop(squatter);
    server.revive().await;
    pings(server.url()).await;
}

#[tokio::test]
async fn a_stopped_server_is_silent_and_later_executes_the_request() {
    let server = RedisServer::start().await;
    let client = Client::open(server.url()).unwrap();
    let mut connection = super::connect(&client).await.unwrap();
    connection.set_response_timeout(Duration::from_millis(50));
    let mut set = redis::cmd("SET");
    set.arg("lock:a").arg("late");
    let request = set.query_async::<()>(&mut connection);
    let error = server.while_stopped(request).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    let cli = server.cli().await;
    eventually("the late command is executed", async || {
        cli.value("lock:a").await.as_deref() == Some("late")
    })
    .await;
}

#[tokio::test]
async fn the_cli_counts_commands_and_clients() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let client = Client::open(server.url()).unwrap();
    let mut connection = super::connect(&client).await.unwrap();
    cli.reset_stats().await;
    for _ in 0..3 {
        let () = redis::cmd("SET").arg("a").arg(1).query_async(&mut connection).await.unwrap();
    }
    assert_eq!(cli.commandstats().await["set"], 3);
    assert_eq!(cli.client_count().await, 1);
    assert_eq!(cli.client_kill_all_others().await, 1);
    eventually("no other client", async || cli.client_count().await == 0).await;
    let killed: RedisResult<String> = redis::cmd("PING").query_async(&mut connection).await;
    assert!(killed.is_err());
}

#[tokio::test]
async fn nothing_left_waits_for_late_releases_and_lets_the_fencing_counter_be() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    cli.query::<()>(&["SET", "lock:fence", "7"]).await;
    cli.query::<()>(&["SET", "lock:a", "theirs", "PX", "150"]).await;
    assert_nothing_left(&server).await;
    assert_eq!(cli.keys("*").await, ["lock:fence"]);
}

#[tokio::test]
async fn nothing_left_names_what_is_left() {
    let server = RedisServer::start().await;
    server.cli().await.query::<()>(&["SET", "lock:a", "theirs"]).await;
    let expected = format!("{}: lock:a = string Some(\"theirs\"), -1 ms left", server.addr());
    assert_eq!(left(&server).await, [expected]);
}
