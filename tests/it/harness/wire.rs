//! Tests of wires: they fail only as configured, with any protocol.

use std::io;
use std::time::Duration;

use lockattr_tests::{Wire, eventually, in_time};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

const QUIET: Duration = Duration::from_millis(100);

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
    /// Returns both ends of a connection over the wire.
    async fn connect(&self) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(self.wire.addr()).await.unwrap();
        let (server, _) = self.server.accept().await.unwrap();
        (client, server)
    }
}

async fn send(from: &mut TcpStream, what: &str) {
    from.write_all(what.as_bytes()).await.unwrap();
}

/// Checks that exactly these bytes arrive next.
async fn expect_bytes(to: &mut TcpStream, what: &str) {
    let mut received = vec![0; what.len()];
    in_time(to.read_exact(&mut received)).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&received), what);
}

async fn expect_silence(to: &mut TcpStream) {
    let received = timeout(QUIET, to.read_u8()).await;
    assert!(received.is_err(), "{received:?}");
}

/// Checks that the connection is closed or broken.
async fn expect_end(to: &mut TcpStream) {
    let received = in_time(to.read_u8()).await;
    let error = received.expect_err("a byte");
    let ends = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
    assert!(ends.contains(&error.kind()), "{error}");
}

#[tokio::test]
async fn everything_passes_both_ways_and_so_does_the_end_of_either() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    // Not a protocol: neither lines nor frames.
    send(&mut client, "\0\r\n*3").await;
    expect_bytes(&mut server, "\0\r\n*3").await;
    send(&mut server, "half").await;
    expect_bytes(&mut client, "half").await;
    assert_eq!(setup.wire.came(), 9);
    client.shutdown().await.unwrap();
    expect_end(&mut server).await;
    send(&mut server, " closed").await;
    expect_bytes(&mut client, " closed").await;
    drop(server);
    expect_end(&mut client).await;
    eventually("the connection is closed", async || setup.wire.connections() == 0).await;
}

#[tokio::test]
async fn what_is_held_arrives_later_in_order() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.hold();
    send(&mut client, "a request").await;
    send(&mut server, "a reply").await;
    expect_silence(&mut server).await;
    expect_silence(&mut client).await;
    send(&mut client, ", and the end").await;
    drop(client);
    expect_silence(&mut server).await;
    setup.wire.pass().await;
    expect_bytes(&mut server, "a request, and the end").await;
    expect_end(&mut server).await;
}

#[tokio::test]
async fn held_replies_hold_no_requests() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.hold_replies();
    send(&mut client, "a request").await;
    expect_bytes(&mut server, "a request").await;
    send(&mut server, "a reply").await;
    expect_silence(&mut client).await;
    setup.wire.pass().await;
    expect_bytes(&mut client, "a reply").await;
}

#[tokio::test]
async fn swallowed_replies_never_arrive_and_their_connection_is_of_no_use_afterwards() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.swallow_replies();
    send(&mut client, "a request").await;
    expect_bytes(&mut server, "a request").await;
    send(&mut server, "a reply").await;
    expect_silence(&mut client).await;
    setup.wire.pass().await;
    expect_end(&mut client).await;
    expect_end(&mut server).await;
    let (mut client, mut server) = setup.connect().await;
    send(&mut server, "another").await;
    expect_bytes(&mut client, "another").await;
}

#[tokio::test]
async fn a_swallowing_wire_forwards_no_end_of_stream() {
    let setup = setup().await;
    let (client, mut server) = setup.connect().await;
    setup.wire.swallow();
    drop(client);
    expect_silence(&mut server).await;
    setup.wire.pass().await;
    expect_end(&mut server).await;
}

#[tokio::test]
async fn a_cut_wire_ends_all_connections_and_accepts_none() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.cut().await;
    expect_end(&mut client).await;
    expect_end(&mut server).await;
    let refused = TcpStream::connect(setup.wire.addr()).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    setup.wire.pass().await;
    let (mut client, mut server) = setup.connect().await;
    send(&mut client, "again").await;
    expect_bytes(&mut server, "again").await;
}

#[tokio::test]
async fn delayed_bytes_take_that_much_longer_each_way() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.delay(Duration::from_millis(40));
    let started = Instant::now();
    send(&mut client, "a request").await;
    expect_bytes(&mut server, "a request").await;
    send(&mut server, "a reply").await;
    expect_bytes(&mut client, "a reply").await;
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(80), "{took:?}");
}

#[tokio::test]
async fn a_server_that_is_down_is_noticed_through_it() {
    let Setup { server, wire } = setup().await;
    drop(server);
    let mut client = TcpStream::connect(wire.addr()).await.unwrap();
    expect_end(&mut client).await;
}
