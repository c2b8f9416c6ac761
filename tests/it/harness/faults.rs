//! Tests of the proxy's rules: each fault affects exactly the chosen request.

mod matching;
mod raw;

use std::time::Duration;

use lockattr_tests::{Cli, Fault, Proxy, RedisServer, eventually};
use redis::aio::MultiplexedConnection;
use redis::{Client, ErrorKind, RedisResult, ServerErrorKind};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use raw::Raw;

/// How long a test waits for something that must not happen.
const QUIET: Duration = Duration::from_millis(100);

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
    async fn connect(&self) -> MultiplexedConnection {
        let client = Client::open(self.server.url_through(&self.proxy)).unwrap();
        super::connect(&client).await.unwrap()
    }

    async fn raw(&self) -> Raw {
        Raw::connect(self.proxy.addr()).await
    }

    async fn counter(&self) -> Option<String> {
        self.cli.value("counter").await
    }

    async fn seen(&self, count: usize) {
        let seen = async || self.proxy.seen("incr") == count;
        eventually("the requests have arrived", seen).await;
    }

    async fn counted(&self, count: &str) {
        let counted = async || self.counter().await.as_deref() == Some(count);
        eventually("the server has executed it", counted).await;
    }

    async fn server_has_no_clients(&self) {
        let closed = async || self.cli.client_count().await == 0;
        eventually("the server's side has ended", closed).await;
    }
}

async fn incr(connection: &mut MultiplexedConnection) -> RedisResult<u64> {
    redis::cmd("INCR").arg("counter").query_async(connection).await
}

/// Sends a request without waiting for the reply.
fn start_incr(connection: &MultiplexedConnection) -> JoinHandle<RedisResult<u64>> {
    let mut connection = connection.clone();
    tokio::spawn(async move { incr(&mut connection).await })
}

async fn stays_silent(request: &mut JoinHandle<RedisResult<u64>>) {
    let outcome = timeout(QUIET, request).await;
    assert!(outcome.is_err(), "{outcome:?}");
}

#[tokio::test]
async fn a_delayed_request_keeps_what_follows_waiting() {
    let setup = setup().await;
    let mut client = setup.raw().await;
    setup.proxy.next("incr", Fault::Delay(QUIET));
    let started = Instant::now();
    client.send("GET counter\r\nINCR counter\r\nGET counter\r\n").await;
    client.expect_reply("$-1\r\n").await;
    client.expect_reply(":1\r\n$1\r\n1\r\n").await;
    assert!(started.elapsed() >= QUIET);
}

#[tokio::test]
async fn a_swallowed_request_leaves_a_hole_that_swallows_all_that_follow() {
    let setup = setup().await;
    let connection = setup.connect().await;
    setup.proxy.next("incr", Fault::SwallowRequest);
    let mut first = start_incr(&connection);
    setup.seen(1).await;
    let mut second = start_incr(&connection);
    setup.seen(2).await;
    stays_silent(&mut first).await;
    setup.proxy.pass();
    stays_silent(&mut second).await;
    assert_eq!(setup.counter().await, None);
    assert_eq!(incr(&mut setup.connect().await).await, Ok(1));
    assert_eq!(setup.proxy.answered("incr"), 1);
}

#[tokio::test]
async fn with_a_reply_swallowed_the_server_acts_and_that_connection_never_hears_again() {
    let setup = setup().await;
    let connection = setup.connect().await;
    let mut other = setup.connect().await;
    setup.proxy.next("incr", Fault::SwallowReply);
    let mut first = start_incr(&connection);
    setup.counted("1").await;
    let mut second = start_incr(&connection);
    setup.counted("2").await;
    stays_silent(&mut first).await;
    setup.proxy.pass();
    stays_silent(&mut second).await;
    assert_eq!(incr(&mut other).await, Ok(3));
    assert_eq!((setup.proxy.seen("incr"), setup.proxy.answered("incr")), (3, 1));
}

#[tokio::test]
async fn a_held_request_reaches_the_server_later_and_so_does_what_follows() {
    let setup = setup().await;
    let connection = setup.connect().await;
    setup.proxy.next("incr", Fault::HoldRequest);
    let mut first = start_incr(&connection);
    setup.seen(1).await;
    let second = start_incr(&connection);
    setup.seen(2).await;
    stays_silent(&mut first).await;
    assert_eq!(setup.counter().await, None);
    setup.proxy.pass();
    assert_eq!(first.await.unwrap(), Ok(1));
    assert_eq!(second.await.unwrap(), Ok(2));
}

#[tokio::test]
async fn a_held_request_reaches_the_server_although_its_client_has_gone() {
    let setup = setup().await;
    let mut client = setup.raw().await;
    setup.proxy.next("incr", Fault::HoldRequest);
    client.send("INCR counter\r\n").await;
    setup.seen(1).await;
    drop(client);
    assert_eq!(setup.counter().await, None);
    setup.proxy.pass();
    setup.counted("1").await;
    setup.server_has_no_clients().await;
}

#[tokio::test]
async fn with_a_reply_held_the_server_acts_and_the_client_hears_later() {
    let setup = setup().await;
    let connection = setup.connect().await;
    setup.proxy.next("incr", Fault::HoldReply);
    let mut first = start_incr(&connection);
    setup.counted("1").await;
    let second = start_incr(&connection);
    setup.counted("2").await;
    stays_silent(&mut first).await;
    assert_eq!(setup.proxy.answered("incr"), 0);
    setup.proxy.pass();
    assert_eq!(first.await.unwrap(), Ok(1));
    assert_eq!(second.await.unwrap(), Ok(2));
    assert_eq!(setup.proxy.answered("incr"), 2);
}

#[tokio::test]
async fn cut_before_the_request_the_server_has_done_nothing() {
    let setup = setup().await;
    let mut connection = setup.connect().await;
    setup.proxy.next("incr", Fault::CutBefore);
    assert!(incr(&mut connection).await.unwrap_err().is_connection_dropped());
    setup.server_has_no_clients().await;
    assert_eq!(setup.counter().await, None);
    assert_eq!(incr(&mut setup.connect().await).await, Ok(1));
}

#[tokio::test]
async fn cut_after_the_request_the_server_has_done_it() {
    let setup = setup().await;
    let mut connection = setup.connect().await;
    setup.proxy.next("incr", Fault::CutAfter);
    assert!(incr(&mut connection).await.unwrap_err().is_connection_dropped());
    setup.server_has_no_clients().await;
    assert_eq!(setup.counter().await.as_deref(), Some("1"));
    assert_eq!(incr(&mut setup.connect().await).await, Ok(2));
    assert_eq!(setup.proxy.answered("incr"), 1);
}

#[tokio::test]
async fn half_open_the_server_has_gone_and_the_client_does_not_know() {
    let setup = setup().await;
    let connection = setup.connect().await;
    setup.proxy.next("incr", Fault::HalfOpen);
    let mut first = start_incr(&connection);
    setup.server_has_no_clients().await;
    let mut second = start_incr(&connection);
    setup.seen(2).await;
    setup.proxy.pass();
    stays_silent(&mut first).await;
    stays_silent(&mut second).await;
    assert_eq!(setup.counter().await, None);
    assert_eq!(setup.proxy.connections(), 1);
    first.abort();
    second.abort();
    drop(connection);
    let closed = async || setup.proxy.connections() == 0;
    eventually("the client's end is noticed", closed).await;
}

#[tokio::test]
async fn an_answer_of_the_proxys_own_reaches_the_client_alone() {
    let setup = setup().await;
    let mut connection = setup.connect().await;
    setup.proxy.next("incr", Fault::Answer("LOADING Redis is loading".into()));
    let error = incr(&mut connection).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::BusyLoading));
    assert_eq!(error.detail(), Some("Redis is loading"));
    assert_eq!(setup.counter().await, None);
    assert_eq!(incr(&mut connection).await, Ok(1), "the connection still works");
    assert_eq!(setup.proxy.answered("incr"), 2);
}
