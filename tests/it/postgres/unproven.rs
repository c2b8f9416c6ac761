//! What a server learns that has not proved itself: a password in clear goes to this machine only, or
//! where the URL asks for it.

use std::sync::Arc;

use lockattr::store::{PostgresStore, ServerOptions};
use lockattr_tests::{Engine, HUNG, capture_events, in_time};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::NoTls;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::*;

/// As another machine: only the system knows that this is ours.
const ELSEWHERE: &str = "127.1";

const WARNING: &str = "not encrypted";

fn message(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 4).expect("a short one").to_be_bytes();
    [&[kind], &length[..], content].concat()
}

/// A request for the password itself, and one for its MD5.
fn requests() -> [Vec<u8>; 2] {
    [message(b'R', &[0, 0, 0, 3]), message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4])]
}

/// A server without TLS.
struct Server {
    port: u16,
    said: UnboundedReceiver<Vec<u8>>,
}

impl Server {
    /// It sends each client `bytes`, and only listens after that.
    async fn sends(bytes: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (says, said) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (bytes, says) = (bytes.clone(), says.clone());
                tokio::spawn(async move {
                    let mut heard = Vec::new();
                    let _gone = talk(&mut client, &bytes, &mut heard).await;
                    says.send(heard).ok();
                });
            }
        });
        Self { port, said }
    }

    fn url(&self, host: &str, settings: &str) -> String {
        format!("postgres://u:s3cret@{host}:{}/shop?connect_timeout=30s&{settings}", self.port)
    }

    /// What the next client says after its startup message, until it leaves.
    async fn hears(&mut self) -> String {
        let heard = in_time(self.said.recv()).await.expect("a client");
        String::from_utf8_lossy(&heard).into_owned()
    }
}

async fn talk(client: &mut TcpStream, bytes: &[u8], heard: &mut Vec<u8>) -> std::io::Result<()> {
    let mut length = client.read_u32().await?;
    if length == 8 {
        client.read_u32().await?;
        client.write_all(b"N").await?;
        length = client.read_u32().await?;
    }
    let mut startup = vec![0; length as usize - 4];
    client.read_exact(&mut startup).await?;
    client.write_all(bytes).await?;
    client.read_to_end(heard).await?;
    Ok(())
}

async fn refusal(url: &str) -> String {
    let refused = in_time(LockManager::connect(url)).await.expect_err("no server at all");
    assert!(!format!("{refused} {refused:?}").contains("s3cret"), "{refused}");
    refused.to_string()
}

/// Red without: the check of the two methods in `LoginCheck`.
#[tokio::test]
async fn a_server_elsewhere_that_denies_tls_gets_no_password_and_no_md5_of_it() {
    for request in requests() {
        for settings in ["", "sslmode=prefer"] {
            let events = capture_events();
            let mut server = Server::sends(request.clone()).await;
            let refused = refusal(&server.url(ELSEWHERE, settings)).await;
            assert!(refused.contains("`sslmode=disable`"), "{refused}");
            assert_eq!(server.hears().await, "");
            assert_eq!(events.count(WARNING), 1, "it is warned of before the login");
        }
    }
}

/// A fake server answers no password, so the error comes from the end of the test's wait.
#[tokio::test]
async fn a_password_goes_to_this_machine_and_where_the_url_says_so() {
    for (host, settings) in [("127.0.0.1", ""), ("localhost", ""), (ELSEWHERE, "sslmode=disable")] {
        let events = capture_events();
        let wrong = message(b'R', &[0, 0, 0, 3]);
        let mut server = Server::sends(wrong).await;
        let url = server.url(host, settings).replace("=30s", "=1s");
        let refused = refusal(&url).await;
        assert!(refused.contains("no answer within"), "{refused}");
        assert!(server.hears().await.contains("s3cret"), "{host} {settings}");
        assert_eq!(events.count(WARNING), 0, "{:?}", events.all());
    }
}

/// Red without: `LONGEST_MESSAGE`.
#[tokio::test]
async fn a_message_before_the_login_that_is_longer_than_any_is_refused_at_its_length() {
    for (host, settings) in [(ELSEWHERE, ""), ("127.0.0.1", ""), ("127.0.0.1", "sslmode=disable")] {
        let server = Server::sends(vec![b'N', 0x7f, 0xff, 0xff, 0xff]).await;
        let refused = refusal(&server.url(host, settings)).await;
        assert!(refused.contains("longer message"), "{refused}");
    }
}

/// Red without: `negotiation` in `By`, and the mode of `NoTls` in `Config::of`.
#[tokio::test]
async fn a_programs_own_tls_is_no_permission_for_plaintext_and_no_tls_is_one() {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let config = |server: &Server| -> tokio_postgres::Config {
        let host = format!("host={ELSEWHERE} port={}", server.port);
        format!("{host} user=u password=s3cret").parse().unwrap()
    };
    let mut server = Server::sends(message(b'R', &[0, 0, 0, 3])).await;
    let options = ServerOptions::new().connect_timeout(HUNG).connections(1);
    let connect = |store| LockManager::builder().store(store).connect();
    let tls = MakeRustlsConnect::new(tls);
    let store = PostgresStore::from_config(config(&server), tls, options.clone()).unwrap();
    let refused = in_time(connect(store)).await.unwrap_err();
    assert_eq!(server.hears().await, "", "{refused}");
    let mut server = Server::sends(message(b'R', &[0, 0, 0, 3])).await;
    let options = options.connect_timeout(Duration::from_secs(1));
    let store = PostgresStore::from_config(config(&server), NoTls, options).unwrap();
    in_time(connect(store)).await.unwrap_err();
    assert!(server.hears().await.contains("s3cret"));
}

/// A login that keeps the password to itself needs no TLS and no setting.
#[tokio::test]
async fn a_real_server_elsewhere_without_tls_admits_by_scram_and_refuses_the_others() {
    let server = PostgresServer::start().await;
    for role in ["scram", "cleartext", "hashed"] {
        let encryption = if role == "hashed" { "md5" } else { "scram-sha-256" };
        let create = format!("create role {role} login superuser password 's3cret'");
        server.run(&format!("set password_encryption = '{encryption}'; {create}")).await;
    }
    let rules = "host all scram 127.0.0.1/32 scram-sha-256\nhost all hashed 127.0.0.1/32 md5\n\
                 host all cleartext 127.0.0.1/32 password";
    server.admit(rules).await;
    let url = |role: &str, host: &str, query: &str| {
        let url = server.url_with("connections=1").replace("127.0.0.1", host);
        with_query(&url.replace("lockattr@", &format!("{role}:s3cret@")), query)
    };
    let locks = async |url: String| {
        acquire(&manager(&url).await, "a").await.release().await.unwrap();
    };
    locks(url("scram", ELSEWHERE, "")).await;
    for role in ["cleartext", "hashed"] {
        let refused = refusal(&url(role, ELSEWHERE, "")).await;
        assert!(refused.contains("`sslmode=disable`"), "{refused}");
        locks(url(role, ELSEWHERE, "sslmode=disable")).await;
        locks(url(role, "127.0.0.1", "")).await;
    }
}

/// The password might cross the network, and the client does not say to which host it connects.
#[test]
fn a_socket_beside_another_machine_needs_a_mode() {
    let open = |mode: &str| {
        PostgresStore::open(&format!("postgres:///shop?host=/run/postgresql,db.example{mode}"))
    };
    let sentence = open("").unwrap_err().to_string();
    assert!(sentence.contains("add `sslmode=verify-full`"), "{sentence}");
    for mode in ["&sslmode=disable", "&sslmode=verify-full"] {
        open(mode).unwrap();
    }
}
