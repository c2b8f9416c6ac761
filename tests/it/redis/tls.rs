//! TLS with the test's own certificate authority, and clients that must show one of its
//! certificates.

mod certificates;
mod files;
mod topologies;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, Mode};
use lockattr_tests::{
    RedisServer, assert_nothing_left, capture_events_from, eventually, in_time, node, skip,
    with_query,
};
use tracing::Level;
use url::Url;

use crate::redis::describe;

const TTL: Duration = Duration::from_secs(600);

/// The server's URL with these files; an empty path leaves its parameter out.
fn url(server: &RedisServer, ca: &Path, cert: &Path, key: &Path) -> String {
    let mut url = Url::parse(&server.tls_url()).unwrap();
    for (name, path) in [("ca", ca), ("cert", cert), ("key", key)] {
        if path != Path::new("") {
            url.query_pairs_mut().append_pair(name, path.to_str().unwrap());
        }
    }
    url.into()
}

/// The right URL for a server that requires a client certificate.
fn right_url(server: &RedisServer) -> String {
    url(server, &server.ca_path(), &server.client_cert_path(), &server.client_key_path())
}

/// The lines of a PEM file, without those that every such file has.
fn secrets(path: &Path) -> Vec<String> {
    let pem = fs::read_to_string(path).unwrap();
    pem.lines().filter(|line| !line.starts_with('-')).map(str::to_owned).collect()
}

/// A lock's whole life: acquired, renewed, waited for, handed off by a notification, shared, and
/// released; over as many connections as without TLS.
#[tokio::test]
async fn a_lock_is_acquired_renewed_handed_off_and_released_over_tls() {
    let server = RedisServer::builder().tls_clients().password("s3cret").start().await;
    let cli = server.cli().await;
    let before = cli.client_count().await;
    let url = with_query(&right_url(&server), "connections=1");
    let (one, other) = (connect(&url).await, connect(&url).await);

    let guard = one.acquire("a", LockOptions::new().ttl(TTL)).await.unwrap();
    skip(TTL / 2);
    eventually("renewed", async || guard.remaining() > TTL * 3 / 4).await;
    let holder = other.holder("a").await.unwrap().unwrap();
    assert_eq!(holder.process, Some(std::process::id()));
    let refused = other.try_acquire("a", LockOptions::new()).await;
    assert!(refused.unwrap().is_none(), "held twice");
    let waiter = tokio::spawn({
        let other = other.clone();
        async move { other.acquire("a", LockOptions::new()).await }
    });
    let line = "lockattr:line-of:{lock:a}";
    eventually("queued", async || cli.pttl(line).await > 0).await;
    let fenced = guard.fencing_token();
    guard.release().await.unwrap();
    let granted = in_time(waiter).await.unwrap().unwrap();
    assert!(granted.fencing_token() > fenced);
    assert_eq!(cli.client_count().await, before + 2, "notifications arrive on the same connection");
    granted.release().await.unwrap();

    let shared = LockOptions::new().mode(Mode::Shared);
    let both = (one.acquire("a", shared.clone()).await, other.acquire("a", shared).await);
    both.0.unwrap().release().await.unwrap();
    both.1.unwrap().release().await.unwrap();
    assert_nothing_left(&server).await;
}

async fn connect(url: &str) -> LockManager {
    LockManager::connect(url).await.unwrap_or_else(|error| panic!("{}", describe(&error)))
}

/// Any file path works: percent-encoded in the URL, and as it is on the builder.
#[tokio::test]
async fn files_may_have_odd_names_and_be_set_on_the_builder() {
    let server = RedisServer::builder().tls_clients().start().await;
    let directory = tempfile::TempDir::new().unwrap();
    let odd = |name: &str, from: PathBuf| {
        let to = directory.path().join(format!("{name} + é %41 @ & = #.pem"));
        fs::copy(from, &to).unwrap();
        to
    };
    let ca = odd("ca", server.ca_path());
    let cert = odd("cert", server.client_cert_path());
    let key = odd("key", server.client_key_path());
    let url = url(&server, &ca, &cert, &key);
    assert!(url.contains("%2541"), "{url}");
    connect(&url).await.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();

    let builder = LockManager::builder().url(server.tls_url());
    let manager = builder.clone().ca(ca).client_cert(cert).client_key(key).connect().await.unwrap();
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    // The URL wins, as with every setting.
    let wrong = builder.ca(server.client_cert_path());
    wrong.url(&url).connect().await.unwrap();
    assert_nothing_left(&server).await;
}

/// With `ca`, the system's authorities no longer count: a caller that names one wants only that
/// one.
///
/// Red without: `authorities::trusted`.
#[tokio::test]
async fn a_custom_authority_replaces_those_of_the_system() {
    let (server, other) = (RedisServer::builder().tls(), RedisServer::builder().tls());
    let (server, other) = (server.start().await, other.start().await);
    // In a separate process, because the system's authorities come from its environment.
    let trusts = |system: &RedisServer, ca: PathBuf| {
        let url = url(&server, &ca, Path::new(""), Path::new(""));
        node!("lock", url = url, trust = system.ca_path().display())
    };
    for mut node in [trusts(&server, PathBuf::new()), trusts(&other, server.ca_path())] {
        node.say("acquire a").await;
        assert!(node.line().await.starts_with("held "));
        assert!(node.finish().await.success());
    }
    assert!(!trusts(&server, other.ca_path()).finish().await.success(), "the system's is trusted");
}

/// Red without: `with_client_cert_resolver` in `client_config` (the good ones fail); without it only the
/// server would know the reason.
#[tokio::test]
async fn a_process_that_is_not_trusted_learns_why_and_runs_no_body() {
    let events = capture_events_from(Level::TRACE);
    let server = RedisServer::builder().tls_clients().password("s3cret").start().await;
    let other = RedisServer::builder().tls_clients().start().await;
    let none = Path::new("");
    let (ca, cert, key) =
        (&server.ca_path(), &server.client_cert_path(), &server.client_key_path());
    let (cert_of_other, key_of_other) = (&other.client_cert_path(), &other.client_key_path());
    let cases = [
        (
            "another authority",
            url(&server, &other.ca_path(), cert, key),
            "invalid peer certificate",
        ),
        ("no authority", url(&server, none, cert, key), "invalid peer certificate"),
        ("no certificate", url(&server, ca, none, none), "alert: CertificateRequired"),
        (
            "one of another authority",
            url(&server, ca, cert_of_other, key_of_other),
            "received fatal alert",
        ),
    ];
    let mut secrets = [secrets(key), secrets(key_of_other)].concat();
    secrets.push("s3cret".into());
    for (case, url, expected) in cases {
        // Several times, because the network decides whether the server's reason arrives.
        for _ in 0..5 {
            let connected = LockManager::connect(&url).await.unwrap_err();
            let manager = LockManager::builder().url(&url).build().unwrap();
            let body = async |_: &Lease| panic!("a body without its lock");
            let refused = manager.with_lock("a", LockOptions::new().retry(0), body).await;
            let refused = refused.map(|()| "granted").unwrap_err();
            for error in [connected, refused] {
                assert!(matches!(error, Error::Store { .. }), "{case}: {error:?}");
                let text = describe(&error);
                assert!(text.contains(expected), "{case}: {text}");
                let shown = format!("{text} {manager:?}");
                let secret = secrets.iter().find(|&secret| shown.contains(secret));
                assert_eq!(secret, None, "{case}: {shown}");
            }
        }
    }
    for secret in &secrets {
        assert!(!events.contains(secret), "{:?}", events.all());
    }
    assert_nothing_left(&server).await;
}
