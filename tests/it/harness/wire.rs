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

async fn says(from: &mut TcpStream, what: &str) {
    from.write_all(what.as_bytes()).await.unwrap();
}

/// Exactly this comes next.
async fn hears(to: &mut TcpStream, what: &str) {
    let mut heard = vec![0; what.len()];
    timeout(SOON, to.read_exact(&mut heard)).await.expect("nothing comes").unwrap();
    assert_eq!(String::from_utf8_lossy(&heard), what);
}

async fn hears_nothing(to: &mut TcpStream) {
    let heard = timeout(NOT_NOW, to.read_u8()).await;
    assert!(heard.is_err(), "{heard:?}");
}

/// The other end has closed, or the way to it has broken.
async fn hears_the_end(to: &mut TcpStream) {
    let heard = timeout(SOON, to.read_u8()).await.expect("no end");
    let error = heard.expect_err("a byte");
    let ends = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
    assert!(ends.contains(&error.kind()), "{error}");
}

#[tokio::test]
async fn everything_passes_both_ways_and_so_does_the_end_of_either() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    // No protocol: neither lines nor frames.
    says(&mut client, "\0\r\n*3").await;
    hears(&mut server, "\0\r\n*3").await;
    says(&mut server, "half").await;
    hears(&mut client, "half").await;
    assert_eq!(setup.wire.came(), 9);
    client.shutdown().await.unwrap();
    hears_the_end(&mut server).await;
    says(&mut server, " closed").await;
    hears(&mut client, " closed").await;
    drop(server);
    hears_the_end(&mut client).await;
    eventually(SOON, "it is gone", async || setup.wire.connections() == 0).await;
}

#[tokio::test]
async fn what_is_held_arrives_later_in_order() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.hold();
    says(&mut client, "a question").await;
    says(&mut server, "an answer").await;
    hears_nothing(&mut server).await;
    hears_nothing(&mut client).await;
    says(&mut client, ", and the end").await;
    drop(client);
    hears_nothing(&mut server).await;
    setup.wire.pass().await;
    hears(&mut server, "a question, and the end").await;
    hears_the_end(&mut server).await;
}

#[tokio::test]
async fn held_replies_hold_no_questions() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.hold_replies();
    says(&mut client, "a question").await;
    hears(&mut server, "a question").await;
    says(&mut server, "an answer").await;
    hears_nothing(&mut client).await;
    setup.wire.pass().await;
    hears(&mut client, "an answer").await;
}

#[tokio::test]
async fn swallowed_replies_never_arrive_and_their_connection_is_of_no_use_afterwards() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.swallow_replies();
    says(&mut client, "a question").await;
    hears(&mut server, "a question").await;
    says(&mut server, "an answer").await;
    hears_nothing(&mut client).await;
    setup.wire.pass().await;
    hears_the_end(&mut client).await;
    hears_the_end(&mut server).await;
    let (mut client, mut server) = setup.connect().await;
    says(&mut server, "another").await;
    hears(&mut client, "another").await;
}

#[tokio::test]
async fn where_all_is_swallowed_not_even_an_end_is_heard() {
    let setup = setup().await;
    let (client, mut server) = setup.connect().await;
    setup.wire.swallow();
    drop(client);
    hears_nothing(&mut server).await;
    setup.wire.pass().await;
    hears_the_end(&mut server).await;
}

#[tokio::test]
async fn cut_it_ends_all_connections_and_lets_no_process_in() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.cut().await;
    hears_the_end(&mut client).await;
    hears_the_end(&mut server).await;
    let refused = TcpStream::connect(setup.wire.addr()).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    setup.wire.pass().await;
    let (mut client, mut server) = setup.connect().await;
    says(&mut client, "again").await;
    hears(&mut server, "again").await;
}

#[tokio::test]
async fn delayed_bytes_take_that_much_longer_each_way() {
    let setup = setup().await;
    let (mut client, mut server) = setup.connect().await;
    setup.wire.delay(Duration::from_millis(40));
    let asked = Instant::now();
    says(&mut client, "a question").await;
    hears(&mut server, "a question").await;
    says(&mut server, "an answer").await;
    hears(&mut client, "an answer").await;
    let took = asked.elapsed();
    assert!(took >= Duration::from_millis(80), "{took:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_felt_through_it() {
    let Setup { server, wire } = setup().await;
    drop(server);
    let mut client = TcpStream::connect(wire.addr()).await.unwrap();
    hears_the_end(&mut client).await;
}
