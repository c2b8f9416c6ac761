//! Names: the first address drops packets, or the look-up is slow.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use lockattr_tests::{Engine, Node, with_query};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::sleep;

use super::resolver::{NAME, Resolver};

/// Runs every test on each engine, and on each way to reach a Redis.
macro_rules! names {
    ($($name:ident: $engine:ty),* $(,)?) => {
        $(mod $name {
            use lockattr_tests::Engine;

            type Server = $engine;

            #[tokio::test]
            async fn an_address_that_drops_packets_does_not_keep_the_next_from_connecting() {
                let server = <Server as Engine>::start().await;
                super::an_address_that_drops_packets_does_not_keep_the_next_from_connecting(
                    &server,
                )
                .await;
            }

            #[tokio::test]
            async fn a_look_up_of_five_seconds_connects() {
                let server = <Server as Engine>::start().await;
                super::a_look_up_of_five_seconds_connects(&server).await;
            }
        })*
    };
}

lockattr_tests::engines!(names);
names! {
    cluster: lockattr_tests::Cluster,
    sentinels: lockattr_tests::Sentinels,
    redlock: lockattr_tests::Independents,
}

/// Red without: the head start, after which the second address is tried too.
async fn an_address_that_drops_packets_does_not_keep_the_next_from_connecting<S: Engine>(
    server: &S,
) {
    passes_the_silent_address(&server.url_at(&named(server)), &server.addrs(), &[]).await;
}

mod rediss {
    use lockattr_tests::RedisServer;

    /// Red without: the same.
    #[tokio::test]
    async fn an_address_that_drops_packets_does_not_keep_the_next_from_connecting() {
        let server = RedisServer::builder().tls().start().await;
        let trust = format!("trust={}", server.ca_path().display());
        super::passes_the_silent_address(&server.tls_url(), &[server.tls_addr()], &[trust]).await;
    }
}

/// Red without: a limit of its own for the look-up.
async fn a_look_up_of_five_seconds_connects<S: Engine>(server: &S) {
    let resolver = Resolver::new();
    let file = resolver.slow();
    // The library's own time for an attempt. All other times are longer than a test.
    let url = with_query(&server.url_at(&named(server)), "connect_timeout=1s");
    let node = resolver.node(&url, &[]);
    let answers = async {
        let first = file.look_up().await;
        sleep(Duration::from_secs(5)).await;
        drop(first);
        // Those of further connections.
        loop {
            drop(file.look_up().await);
            sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = locks(node) => {}
        () = answers => {}
    }
}

/// The servers' addresses, by the name.
fn named(server: &impl Engine) -> Vec<String> {
    server.addrs().iter().map(|addr| addr.replace("127.0.0.1", NAME)).collect()
}

/// A process connects by the URL, whose name has an address first that drops packets.
async fn passes_the_silent_address(url: &str, addrs: &[String], more: &[String]) {
    let mut silent = Vec::new();
    for addr in addrs {
        silent.push(Silent::beside(addr).await);
    }
    // An attempt at an address lasts for longer than the test. A client of ZooKeeper that connects again may look the
    // name up itself, and then tries its first address for two response timeouts.
    let url = with_query(url, "connect_timeout=1h&response_timeout=5s");
    locks(Resolver::new().node(&url, more)).await;
}

/// An address that drops packets, as a firewall does: the queue of its listener is full.
struct Silent {
    _listener: TcpListener,
    _queued: TcpStream,
}

impl Silent {
    /// The first address of the server's name, with the server's port.
    async fn beside(addr: &str) -> Self {
        let (_, port) = addr.rsplit_once(':').expect("HOST:PORT");
        let addr = SocketAddr::from((Ipv6Addr::LOCALHOST, port.parse().expect("a port")));
        let socket = TcpSocket::new_v6().expect("IPv6");
        socket.bind(addr).expect("no server listens there");
        // Linux queues one connection more than this.
        let listener = socket.listen(0).expect("a listener");
        let queued = TcpStream::connect(addr).await.expect("the first is queued");
        Self { _listener: listener, _queued: queued }
    }
}

async fn locks(mut node: Node) {
    node.say("acquire named").await;
    let answer = node.line().await;
    assert!(answer.starts_with("held "), "{answer}");
    node.say("release").await;
    assert_eq!(node.line().await, "released");
}
