//! Tests of the proxy's switches: the network fails only as configured.

use std::time::Duration;

use lockattr_tests::{Cli, Proxy, RedisServer, eventually};
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisResult};
use tokio::time::{Instant, timeout};

struct Setup {
    server: RedisServer,
    cli: Cli,
    proxy: Proxy,
}

async fn setup() -> Setup {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let proxy = Proxy::start(server.addr()).await;
    Setup { server, cli, proxy }
}

impl Setup {
    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        super::connect(&Client::open(self.server.url_through(&self.proxy))?).await
    }
}

/// Whether there is no reply for a moment.
async fn is_silent<T>(future: impl Future<Output = T>) -> bool {
    timeout(Duration::from_millis(100), future).await.is_err()
}

async fn incr(connection: &mut MultiplexedConnection) -> RedisResult<u64> {
    redis::cmd("INCR").arg("counter").query_async(connection).await
}

#[tokio::test]
async fn it_passes_everything_on() {
    let setup = setup().await;
    let mut connection = setup.connect().await.unwrap();
    let long = "x".repeat(1 << 20);
    let () = redis::cmd("SET").arg("long").arg(&long).query_async(&mut connection).await.unwrap();
    let back: String = redis::cmd("GET").arg("long").query_async(&mut connection).await.unwrap();
    assert_eq!(back.len(), long.len());
    assert_eq!(setup.proxy.connections(), 1);
}

#[tokio::test]
async fn a_frozen_proxy_holds_bytes_and_forwards_them_later() {
    let setup = setup().await;
    let mut connection = setup.connect().await.unwrap();
    setup.proxy.freeze();
    assert!(is_silent(incr(&mut connection)).await);
    assert_eq!(setup.cli.value("counter").await, None);
    assert!(is_silent(setup.connect()).await, "accepted, but without a reply");
    setup.proxy.pass();
    assert_eq!(incr(&mut connection).await, Ok(2));
}

#[tokio::test]
async fn with_replies_swallowed_the_server_acts_and_the_client_never_hears() {
    let setup = setup().await;
    let mut connection = setup.connect().await.unwrap();
    setup.proxy.swallow_replies();
    assert!(is_silent(incr(&mut connection)).await);
    let counted = async || setup.cli.value("counter").await.as_deref() == Some("1");
    eventually("the server acts", counted).await;
    setup.proxy.pass();
    assert!(is_silent(incr(&mut connection)).await, "a stream that has lost bytes");
    let mut fresh = setup.connect().await.unwrap();
    assert_eq!(incr(&mut fresh).await, Ok(3));
}

#[tokio::test]
async fn with_requests_swallowed_the_server_hears_nothing() {
    let setup = setup().await;
    let mut connection = setup.connect().await.unwrap();
    setup.proxy.swallow_requests();
    assert!(is_silent(incr(&mut connection)).await);
    assert_eq!(setup.cli.value("counter").await, None);
}

#[tokio::test]
async fn cut_connections_end_on_both_sides_and_new_ones_are_welcome() {
    let setup = setup().await;
    let mut connection = setup.connect().await.unwrap();
    eventually("it is the only one", async || setup.cli.client_count().await == 1).await;
    setup.proxy.cut().await;
    assert!(incr(&mut connection).await.unwrap_err().is_connection_dropped());
    eventually("the server notices", async || setup.cli.client_count().await == 0).await;
    assert_eq!(incr(&mut setup.connect().await.unwrap()).await, Ok(1));
}

#[tokio::test]
async fn refused_means_no_process_listens_and_the_open_ones_go_on() {
    let setup = setup().await;
    let mut connection = setup.connect().await.unwrap();
    setup.proxy.refuse().await;
    let error = setup.connect().await.unwrap_err();
    assert!(error.is_connection_refusal(), "{error}");
    assert_eq!(incr(&mut connection).await, Ok(1));
    setup.proxy.accept().await;
    assert_eq!(incr(&mut setup.connect().await.unwrap()).await, Ok(2));
}

#[tokio::test]
async fn delayed_bytes_take_that_much_longer_each_way() {
    let setup = setup().await;
    let mut connection = setup.connect().await.unwrap();
    setup.proxy.delay(Duration::from_millis(40));
    let started = Instant::now();
    assert_eq!(incr(&mut connection).await, Ok(1));
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(80), "{took:?}");
}

#[tokio::test]
async fn a_dead_server_is_noticed_through_it() {
    let setup = setup().await;
    let mut connection = setup.connect().await.unwrap();
    setup.server.kill();
    assert!(incr(&mut connection).await.is_err());
    assert!(setup.connect().await.is_err());
    setup.server.restart().await;
    assert_eq!(incr(&mut setup.connect().await.unwrap()).await, Ok(1));
}
