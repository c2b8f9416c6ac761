//! Wires fail as told, whatever passes over them, and only as told.

use std::io;
use std::time::Duration;

use lockattr_tests::{Wire, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

const SOON: Duration = Duration::from_secs(12);
const NOT_NOW: Duration = Duration::from_millis(100);

struct Setup {
    server: TcpListener,
    wire: Wire,
}

async fn setup() -> Setup {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let wire = Wire::start(server.local_addr().unwrap().to_string()).await;
    Setup { server, wire }
}

impl Setup {
    /// Both ends of a connection over the wire.
    async fn connect(&self) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(self.wire.addr()).await.unwrap();
        let (server, _) = self.server.accept().await.unwrap();
        (client, server)
    }
}

async fn send_text(from: &mut TcpStream, what: &str) {
    from.write_all(what.as_bytes()).await.unwrap();
}

/// Exactly this comes next.
async fn expect_text(to: &mut TcpStream, what: &str) {
    let mut received = vec![0; what.len()];
    timeout(SOON, to.read_exact(&mut received)).await.expect("no bytes arrive").unwrap();
    assert_eq!(String::from_utf8_lossy(&received), what);
}

async fn expect_nothing(to: &mut TcpStream) {
    let received = timeout(NOT_NOW, to.read_u8()).await;
    assert!(received.is_err(), "{received:?}");
}

/// The other end has closed, or the way to it has broken.
async fn expect_close(to: &mut TcpStream) {
    let received = timeout(SOON, to.read_u8()).await.expect("no end");
    let error = received.expect_err("a byte");
    let ends = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
    assert!(ends.contains(&error.kind()), "{error}");
}

#[tokio::test]
async fn bytes_pass_both_ways_and_so_does_the_end_of_either_side() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    // No protocol: neither lines nor frames.
    send_text(&mut client, "\0\r\n*3").await;
    expect_text(&mut server, "\0\r\n*3").await;
    send_text(&mut server, "half").await;
    expect_text(&mut client, "half").await;
    assert_eq!(setup.wire.came(), 9);
    client.shutdown().await.unwrap();
    expect_close(&mut server).await;
    send_text(&mut server, " closed").await;
    expect_text(&mut client, " closed").await;
    drop(server);
    expect_close(&mut client).await;
    eventually(SOON, "it is gone", async || setup.wire.connections() == 0).await;
}

#[tokio::test]
async fn what_is_held_arrives_later_in_order() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.hold();
    send_text(&mut client, "a request").await;
    send_text(&mut server, "an answer").await;
    expect_nothing(&mut server).await;
    expect_nothing(&mut client).await;
    send_text(&mut client, ", and the end").await;
    drop(client);
    expect_nothing(&mut server).await;
    setup.wire.pass().await;
    expect_text(&mut server, "a request, and the end").await;
    expect_close(&mut server).await;
}

#[tokio::test]
async fn holding_replies_does_not_hold_requests() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.hold_replies();
    send_text(&mut client, "a request").await;
    expect_text(&mut server, "a request").await;
    send_text(&mut server, "an answer").await;
    expect_nothing(&mut client).await;
    setup.wire.pass().await;
    expect_text(&mut client, "an answer").await;
}

#[tokio::test]
async fn swallowed_replies_never_arrive_and_their_connection_is_of_no_use_afterwards() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.swallow_replies();
    send_text(&mut client, "a request").await;
    expect_text(&mut server, "a request").await;
    send_text(&mut server, "an answer").await;
    expect_nothing(&mut client).await;
    setup.wire.pass().await;
    expect_close(&mut client).await;
    expect_close(&mut server).await;
    let (mut client, mut server) = setup.connect().await;
    send_text(&mut server, "another").await;
    expect_text(&mut client, "another").await;
}

#[tokio::test]
async fn with_everything_swallowed_not_even_a_close_gets_through() {
    let setup = setup().await;
    let (client, mut server) = setup.connect().await;
    setup.wire.swallow();
    drop(client);
    expect_nothing(&mut server).await;
    setup.wire.pass().await;
    expect_close(&mut server).await;
}

#[tokio::test]
async fn cut_it_ends_all_connections_and_accepts_none() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.cut().await;
    expect_close(&mut client).await;
    expect_close(&mut server).await;
    let refused = TcpStream::connect(setup.wire.addr()).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    setup.wire.pass().await;
    let (mut client, mut server) = setup.connect().await;
    send_text(&mut client, "again").await;
    expect_text(&mut server, "again").await;
}

#[tokio::test]
async fn delayed_bytes_take_that_much_longer_each_way() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.delay(Duration::from_millis(40));
    let started = Instant::now();
    send_text(&mut client, "a request").await;
    expect_text(&mut server, "a request").await;
    send_text(&mut server, "an answer").await;
    expect_text(&mut client, "an answer").await;
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(80), "{took:?}");
}

#[tokio::test]
async fn a_missing_server_closes_connections_through_it() {
    let Setup { server, wire } = setup().await;
    drop(server);
    let mut client = TcpStream::connect(wire.addr()).await.unwrap();
    expect_close(&mut client).await;
}
