//! What a server may ask that has not proved itself: a password, or a key to encrypt it, only of this
//! machine or where the URL asks for it, and nothing that takes long or makes the client panic.

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{MariaDb, capture_events, in_time, with_query};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::real;

/// As another machine: only the system knows that this is ours.
const ELSEWHERE: &str = "127.1";

const WARNING: &str = "not encrypted";

/// The server wants the password itself.
const FULL_LOGIN: &[u8] = &[1, 4];

const NONCE: &[u8; 21] = b"abcdefghijklmnopqrst\0";

/// A server without TLS, whose users log in by `caching_sha2_password`.
struct Server {
    port: u16,
    said: UnboundedReceiver<Vec<Vec<u8>>>,
}

impl Server {
    /// After its greeting, it sends these packets: each after one of the client.
    async fn sends(packets: &[&[u8]]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (says, said) = unbounded_channel();
        let packets: Vec<Vec<u8>> = packets.iter().map(|packet| packet.to_vec()).collect();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (packets, says) = (packets.clone(), says.clone());
                tokio::spawn(async move {
                    let mut heard = Vec::new();
                    let _gone = talk(&mut client, packets, &mut heard).await;
                    says.send(heard).ok();
                });
            }
        });
        Self { port, said }
    }

    fn url(&self, host: &str, settings: &str) -> String {
        format!("mysql://u:s3cret@{host}:{}/shop?connect_timeout=30s&{settings}", self.port)
    }

    /// What the next client sends after its first answer.
    async fn hears(&mut self) -> Vec<Vec<u8>> {
        in_time(self.said.recv()).await.expect("a client")
    }
}

fn greeting() -> Vec<u8> {
    let capabilities = [0xff, 0xf7, 45, 2, 0, 0xff, 0xdf, 21];
    let (first, second) = NONCE.split_at(8);
    [
        &b"\x0a9.7.0\0"[..],
        &[7, 0, 0, 0],
        first,
        &[0],
        &capabilities,
        &[0; 10],
        second,
        b"caching_sha2_password\0",
    ]
    .concat()
}

async fn talk(
    client: &mut TcpStream,
    packets: Vec<Vec<u8>>,
    heard: &mut Vec<Vec<u8>>,
) -> std::io::Result<()> {
    send(client, 0, &greeting()).await?;
    let (mut number, _answer) = receive(client).await?;
    for packet in packets {
        number = number.wrapping_add(1);
        send(client, number, &packet).await?;
        // Not every packet of a server has an answer.
        if packet.first() == Some(&0xff) {
            continue;
        }
        let (next, payload) = receive(client).await?;
        heard.push(payload);
        number = next;
    }
    receive(client).await?;
    Ok(())
}

async fn send(client: &mut TcpStream, number: u8, payload: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(payload.len()).expect("a short one").to_le_bytes();
    client.write_all(&[&length[..3], &[number], payload].concat()).await
}

async fn receive(client: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    client.read_exact(&mut header).await?;
    let [a, b, c, number] = header;
    let mut payload = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
    client.read_exact(&mut payload).await?;
    Ok((number, payload))
}

async fn refusal(url: &str) -> String {
    let refused = in_time(LockManager::connect(url)).await.expect_err("no server at all");
    assert!(!format!("{refused} {refused:?}").contains("s3cret"), "{refused}");
    refused.to_string()
}

/// An RSA key as a server sends it. A modulus and an exponent as DER has them.
fn key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let element = |tag: u8, content: &[u8]| {
        let length = u32::try_from(content.len()).expect("a short one").to_be_bytes();
        [&[tag, 0x84], &length[..], content].concat()
    };
    let numbers = [element(2, modulus), element(2, exponent)].concat();
    let bits = element(3, &[&[0], &element(0x30, &numbers)[..]].concat());
    let rsa = [0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1, 5, 0];
    let whole = element(0x30, &[&rsa, &bits[..]].concat());
    let text = base64(&whole);
    format!("\u{1}-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n").into_bytes()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = (0..3).fold(0, |sum, at| sum << 8 | u32::from(*chunk.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { digit.into() } else { '=' });
        }
    }
    text
}

/// An odd modulus of so many bytes.
fn modulus(bytes: usize) -> Vec<u8> {
    [&[0, 0x80], &vec![7; bytes - 1][..]].concat()
}

/// Red without: the check of `may_send_passwords` in `LoginCheck`.
#[tokio::test]
async fn a_server_elsewhere_that_denies_tls_gets_no_password_by_its_key() {
    for settings in ["", "ssl-mode=preferred"] {
        let events = capture_events();
        let mut server = Server::sends(&[FULL_LOGIN, &key(&modulus(256), &[1, 0, 1])]).await;
        let refused = refusal(&server.url(ELSEWHERE, settings)).await;
        assert!(refused.contains("`ssl-mode=disabled`"), "{refused}");
        assert_eq!(server.hears().await, Vec::<Vec<u8>>::new());
        assert_eq!(events.count(WARNING), 1, "it is warned of before the login");
    }
}

/// The client takes a report of progress, which begins as an error does, for no end of the login.
///
/// Red without: the refusal of such a report in `LoginCheck`.
#[tokio::test]
async fn a_report_of_progress_does_not_hide_a_request_for_the_password() {
    let progress = [0xff, 0xff, 0xff, 1, 1, 1, 0, 0, 0, 1, b'x'];
    let mut server = Server::sends(&[&progress, FULL_LOGIN]).await;
    let refused = refusal(&server.url(ELSEWHERE, "")).await;
    assert!(refused.contains("unexpected"), "{refused}");
    assert_eq!(server.hears().await, Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn a_password_is_encrypted_for_this_machine_and_where_the_url_says_so() {
    for (host, settings) in [("127.0.0.1", ""), (ELSEWHERE, "ssl-mode=disabled")] {
        let denied = [&[0xff, 0x15, 0x04][..], b"#28000Access denied"].concat();
        let mut server =
            Server::sends(&[FULL_LOGIN, &key(&modulus(256), &[1, 0, 1]), &denied]).await;
        let refused = refusal(&server.url(host, settings)).await;
        assert!(refused.contains("Access denied"), "{refused}");
        let heard = server.hears().await;
        assert_eq!((heard[0].as_slice(), heard[1].len()), (&[2][..], 256));
    }
}

/// The driver panics on most of them, and works for more than a minute on the longest.
///
/// Red without: `ServerKey`, and the check of the nonce.
#[tokio::test]
async fn a_key_that_is_none_is_refused() {
    let switch = b"\xfecaching_sha2_password\0";
    let (good, rubbish) = (key(&modulus(256), &[1, 0, 1]), b"\x01rubbish");
    let long = key(&modulus(200_000), &modulus(200));
    for (packets, says) in [
        (&[FULL_LOGIN, rubbish][..], "no RSA key"),
        (&[FULL_LOGIN, b""], "no RSA key"),
        (&[FULL_LOGIN, b"\x01"], "no RSA key"),
        (&[FULL_LOGIN, &good[..200]], "no RSA key"),
        (&[FULL_LOGIN, &key(&[0], &[1, 0, 1])], "no RSA key"),
        (&[FULL_LOGIN, &key(&[0; 256], &[1, 0, 1])], "no RSA key"),
        (&[FULL_LOGIN, &key(&modulus(16), &[3])], "no RSA key"),
        (&[FULL_LOGIN, &key(&modulus(4096), &[1, 0, 1])], "no RSA key"),
        (&[FULL_LOGIN, &long], "unexpected packet"),
        (&[switch, FULL_LOGIN, &good], "unexpected packet"),
    ] {
        let server = Server::sends(packets).await;
        let refused = refusal(&server.url("127.0.0.1", "")).await;
        assert!(refused.contains(says), "{says}: {refused}");
    }
}

/// Red without: the list of methods in `LoginCheck`.
#[tokio::test]
async fn a_server_cannot_choose_a_method_that_shows_the_password() {
    for method in ["mysql_clear_password", "dialog", "sha256_password", "mysql_old_password", ""] {
        for host in ["127.0.0.1", ELSEWHERE] {
            let switch = [b"\xfe", method.as_bytes(), b"\0", NONCE].concat();
            let mut server = Server::sends(&[&switch]).await;
            let refused = refusal(&server.url(host, "")).await;
            assert!(refused.contains("asks for a login by"), "{method}: {refused}");
            assert_eq!(server.hears().await, Vec::<Vec<u8>>::new());
        }
    }
}

/// Ten minutes of one core, in the driver.
///
/// Red without: `MOST_ROUNDS`.
#[tokio::test]
async fn a_server_cannot_choose_how_long_a_login_takes() {
    let switch = [&b"\xfeparsec\0"[..], &[7; 32]].concat();
    let salt = [&[1, b'P', 20][..], &[7; 18]].concat();
    let server = Server::sends(&[&switch, &salt]).await;
    let refused = refusal(&server.url("127.0.0.1", "")).await;
    assert!(refused.contains("unexpected packet"), "{refused}");
}

async fn locks(url: &str) {
    let manager = match in_time(LockManager::connect(url)).await {
        Ok(manager) => manager,
        Err(error) => panic!("{url}: {error}"),
    };
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
}

/// The server forgets whom it knows (`FLUSH PRIVILEGES`), so the next login is a full one.
#[tokio::test]
async fn users_of_mysql_itself_log_in_with_and_without_tls() {
    for options in [&[][..], &["--tls-version="]] {
        let Some(server) = real::server_with(options).await else { return };
        server.execute("mysql", "CREATE DATABASE shop").await;
        let url = |host: &str, settings: &str| {
            with_query(&server.url_of("shop").replace("127.0.0.1", host), settings)
        };
        let forget = async || server.execute("mysql", "FLUSH PRIVILEGES").await;
        for (host, settings) in [("127.0.0.1", ""), (ELSEWHERE, "ssl-mode=disabled")] {
            forget().await;
            locks(&url(host, settings)).await;
        }
        forget().await;
        if options.is_empty() {
            locks(&url(ELSEWHERE, "")).await;
        } else {
            let refused = refusal(&url(ELSEWHERE, "")).await;
            assert!(refused.contains("`ssl-mode=disabled`"), "{refused}");
            locks(&url("127.0.0.1", "")).await;
            // Known again, the user proves the password without sending it.
            locks(&url(ELSEWHERE, "")).await;
        }
    }
}

/// MySQL has no such method.
#[tokio::test]
async fn users_of_mariadb_log_in_by_ed25519() {
    if MariaDb::runs_mysql() {
        return;
    }
    let server = MariaDb::with(&[]).await;
    let database = server.database().await;
    server.execute("mysql", "INSTALL SONAME 'auth_ed25519'").await;
    let create = "CREATE USER signs IDENTIFIED VIA ed25519 USING PASSWORD('s3cret')";
    server.execute("mysql", create).await;
    server.execute("mysql", &format!("GRANT ALL ON {database}.* TO signs")).await;
    for host in ["127.0.0.1", ELSEWHERE] {
        let url = server.url_of(&database).replace("locker:", "signs:").replace("127.0.0.1", host);
        locks(&url).await;
    }
}
