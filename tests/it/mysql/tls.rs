//! TLS to a real server: what each mode verifies, and what a refusal says.

use std::fs::write;
use std::path::PathBuf;

use lockattr::store::MysqlStore;
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Engine, MariaDb, in_time, with_query};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Receiver, channel};

use crate::over_tls;

/// A server with a certificate for `localhost`, its authority, and another authority.
struct Secure {
    server: MariaDb,
    files: TempDir,
}

impl Secure {
    async fn start(is_expired: bool) -> Self {
        let files = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        write_certificates(&files, is_expired);
        let option =
            |name: &str, file: &str| format!("--{name}={}", files.path().join(file).display());
        let options = [
            option("ssl-ca", "ca.pem"),
            option("ssl-cert", "server.pem"),
            option("ssl-key", "server.key"),
        ];
        let server = MariaDb::with(&options.each_ref().map(String::as_str)).await;
        server.execute("mysql", "CREATE DATABASE lockattr").await;
        for (user, requires) in [("encrypted", "SSL"), ("certified", "X509")] {
            let create = format!("CREATE USER {user} IDENTIFIED BY 's3cret' REQUIRE {requires}");
            server.execute("mysql", &create).await;
            server.execute("mysql", &format!("GRANT ALL ON lockattr.* TO {user}")).await;
        }
        Self { server, files }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn url(&self, user: &str, host: &str, settings: &str) -> String {
        let url = self.server.url_at(&self.server.addrs());
        let url = url.replace("locker:s3cret@127.0.0.1", &format!("{user}:s3cret@{host}"));
        let (ca, other) = (self.file("ca.pem"), self.file("other.pem"));
        let settings = settings
            .replace("CA", &ca.display().to_string())
            .replace("OTHER", &other.display().to_string())
            .replace("CLIENT", &self.file("client").display().to_string());
        with_query(&url, &settings)
    }

    /// Every connection of a user that must encrypt is encrypted, or the lock cannot be acquired.
    async fn locks(&self, user: &str, host: &str, settings: &str) {
        over_tls::locks(&self.url(user, host, settings)).await;
    }

    async fn refused(&self, user: &str, host: &str, settings: &str) -> String {
        over_tls::refused(&self.url(user, host, settings)).await
    }
}

fn write_certificates(files: &TempDir, is_expired: bool) {
    let (ca, issuer) = authority("ours");
    let (other, _) = authority("another");
    let (server, server_key) = signed("localhost", &issuer, is_expired);
    let (client, client_key) = signed("client", &issuer, false);
    for (name, pem) in [
        ("ca.pem", ca),
        ("other.pem", other),
        ("server.pem", server),
        ("server.key", server_key),
        ("client.pem", client),
        ("client.key", client_key),
    ] {
        write(files.path().join(name), pem).expect("a file in our own directory");
    }
}

fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    (pem, Issuer::new(params, key))
}

fn signed(name: &str, issuer: &Issuer<'_, KeyPair>, is_expired: bool) -> (String, String) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    if is_expired {
        (params.not_before, params.not_after) =
            (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    }
    let key = KeyPair::generate().expect("a key");
    (params.signed_by(&key, issuer).expect("a certificate").pem(), key.serialize_pem())
}

/// Red without: `Verification` in `Tls::with`.
#[tokio::test]
async fn each_mode_verifies_what_it_says() {
    let secure = Secure::start(false).await;
    for settings in ["ssl-mode=preferred", "ssl-mode=REQUIRED"] {
        secure.locks("encrypted", "127.0.0.1", settings).await;
    }
    // The default on one machine.
    secure.locks("locker", "127.0.0.1", "").await;
    for settings in ["ssl-mode=verify_ca&ca=CA", "ssl-mode=required&ca=CA"] {
        secure.locks("encrypted", "127.0.0.1", settings).await;
    }
    for settings in ["ssl-mode=verify_identity&ca=CA", "ca=CA", "ca=CA&lock=session"] {
        secure.locks("encrypted", "localhost", settings).await;
    }
    secure.locks("locker", "127.0.0.1", "ssl-mode=disabled").await;
    for (host, settings, says) in [
        ("127.0.0.1", "ssl-mode=disabled", "needs TLS or a certificate"),
        ("127.0.0.1", "ssl-mode=verify_identity&ca=CA", "is for another host"),
        ("127.0.0.1", "ca=CA", "is for another host"),
        ("localhost", "ssl-mode=verify_identity&ca=OTHER", "signed by an unknown authority"),
        ("localhost", "ssl-mode=verify_ca&ca=OTHER", "signed by an unknown authority"),
        // The system's authorities do not know ours.
        ("localhost", "ssl-mode=verify_identity", "signed by an unknown authority"),
    ] {
        let sentence = secure.refused("encrypted", host, settings).await;
        assert!(sentence.contains(says), "{settings}: {sentence}");
    }
}

/// The system resolves `127.1`, and no certificate can have such a name.
///
/// Red without: the address in place of a name in `server_name`.
#[tokio::test]
async fn a_host_that_no_certificate_can_name_is_reached_where_the_name_is_not_verified() {
    let secure = Secure::start(false).await;
    for settings in ["", "ssl-mode=preferred", "ssl-mode=required", "ssl-mode=verify_ca&ca=CA"] {
        secure.locks("encrypted", "127.1", settings).await;
    }
    let sentence = secure.refused("encrypted", "127.1", "ssl-mode=verify_identity&ca=CA").await;
    assert!(sentence.contains("no certificate can name the host 127.1"), "{sentence}");
}

#[tokio::test]
async fn a_user_that_needs_a_certificate_gets_in_with_it() {
    let secure = Secure::start(false).await;
    let with = "ca=CA&client_cert=CLIENT.pem&client_key=CLIENT.key";
    secure.locks("certified", "localhost", with).await;
    let sentence = secure.refused("certified", "localhost", "ca=CA").await;
    assert!(sentence.contains("`client_cert`"), "{sentence}");
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let secure = Secure::start(true).await;
    let sentence = secure.refused("encrypted", "localhost", "ca=CA").await;
    assert!(sentence.contains("has expired"), "{sentence}");
    secure.locks("encrypted", "localhost", "ssl-mode=required").await;
}

/// MySQL creates a certificate for itself, so only MariaDB can be without.
#[tokio::test]
async fn a_server_without_tls_is_refused_where_the_mode_requires_it() {
    if MariaDb::runs_mysql() {
        return;
    }
    let server = MariaDb::with(&["--skip-ssl"]).await;
    server.execute("mysql", "CREATE DATABASE lockattr").await;
    let url = server.url_at(&server.addrs());
    let refused = LockManager::connect(with_query(&url, "ssl-mode=required")).await.unwrap_err();
    assert!(refused.to_string().contains("offers no TLS"), "{refused}");
    let manager = LockManager::connect(&url).await.expect("`preferred` is the default");
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
}

/// A greeting of MySQL that offers TLS.
fn greeting() -> Vec<u8> {
    let capabilities = [0xff, 0xff, 45, 2, 0, 0xff, 0xdf, 21];
    let payload = [
        &b"\x0a8.4.0\0"[..],
        &[7, 0, 0, 0],
        b"nonce123\0",
        &capabilities,
        &[0; 10],
        b"nonce4567890\0",
        b"caching_sha2_password\0",
    ]
    .concat();
    [&[u8::try_from(payload.len()).expect("a short one"), 0, 0, 0], &payload[..]].concat()
}

/// A server that greets each client with `bytes`, and then only reads. Returns its URL, and where it
/// reports each client that is gone.
async fn greets(bytes: Vec<u8>) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (report, gone) = channel(1);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (bytes, report) = (bytes.clone(), report.clone());
            tokio::spawn(async move {
                let _gone = client.write_all(&bytes).await;
                let _reset = client.read_to_end(&mut Vec::new()).await;
                let _not_interesting = report.send(()).await;
            });
        }
    });
    (format!("mysql://u:s3cret@{address}/shop?ssl-mode=required"), gone)
}

/// The certificate would prove nothing: these bytes come from the machine that changed the greeting.
///
/// Red without: the check of `packets.rest()` in `Greeted::connect`.
#[tokio::test]
async fn data_before_tls_is_refused() {
    let accepts = [7, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0];
    let (url, _) = greets([greeting(), accepts.to_vec()].concat()).await;
    let url = with_query(&url, "connect_timeout=60s");
    let refused = LockManager::connect(url).await.unwrap_err();
    assert!(refused.to_string().contains("it sent data before TLS"), "{refused}");
}

/// Red without: `answers.next` beside the handshake in `Greeted::log_in`.
#[tokio::test]
async fn a_handshake_that_never_ends_leaves_no_connection_behind() {
    let (url, mut gone) = greets(greeting()).await;
    let url = with_query(&url, "connect_timeout=1s");
    let refused = LockManager::connect(url).await.unwrap_err();
    assert!(refused.to_string().contains("no answer within"), "{refused}");
    in_time(gone.recv()).await.expect("a report");
}

#[test]
fn the_names_of_other_clients_and_wrong_modes_are_refused() {
    for (settings, says) in [
        ("sslmode=require", "write `ssl-mode`"),
        ("tls=true", "write `ssl-mode`"),
        ("ssl-mode=on", "`verify_identity`"),
        ("ssl-mode=disabled&ca=/nowhere", "leave `ssl-mode=disabled` out"),
        ("ca=/nowhere", "`ca=/nowhere` cannot be read"),
        ("ssl-mode=verify_ca", "any public authority"),
        ("client_cert=/nowhere", "`client_key`"),
    ] {
        match MysqlStore::open(&format!("mysql://h1/shop?{settings}")) {
            Err(Error::InvalidOptions(sentence)) => {
                assert!(sentence.contains(says), "{settings}: {sentence}");
            }
            other => panic!("{settings}: {other:?}"),
        }
    }
}
