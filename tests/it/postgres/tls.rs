//! TLS with the test's own authority: each `sslmode`, and what is refused is said in a sentence.

mod logins;
mod refusals;
mod settings;

use std::cell::Cell;
use std::error::Error as _;

use lockattr::Error;
use lockattr_tests::{Engine, ServerCertificate, capture_events};

use super::*;

/// The URL of a server by its name.
fn url(server: &PostgresServer, query: &str) -> String {
    with_query(&server.url_with("connections=1").replace("127.0.0.1", "localhost"), query)
}

/// The setting that trusts the server's authority.
fn trusting(server: &PostgresServer) -> String {
    format!("sslrootcert={}", server.ca_path().display())
}

/// Why a URL leads to no connection.
async fn refused(url: &str) -> String {
    match LockManager::connect(url).await {
        Err(error @ Error::Store { .. }) => {
            let source = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{error}: {source}")
        }
        Err(other) => panic!("{url}: {other:?}"),
        Ok(_) => panic!("{url} is accepted"),
    }
}

/// How many of a server's sessions of lockattr there are with TLS, and without.
async fn sessions(server: &PostgresServer) -> (i64, i64) {
    let count = "select count(*) filter (where ssl), count(*) filter (where not ssl)
        from pg_stat_ssl join pg_stat_activity using (pid)
        where application_name = 'lockattr' or usename = 'secured'";
    let row = server.client().await.query_one(count, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// Locks once, and returns whether the session was encrypted.
async fn is_encrypted(server: &PostgresServer, url: &str) -> bool {
    let none = async || sessions(server).await == (0, 0);
    eventually("earlier sessions end", none).await;
    let locks = manager(url).await;
    let held = acquire(&locks, "a").await;
    let there = Cell::new((0, 0));
    // The store looks for a pooler with sessions of its own, which end.
    let one = async || {
        there.set(sessions(server).await);
        matches!(there.get(), (1, 0) | (0, 1))
    };
    eventually(&format!("{url}: one session"), one).await;
    held.release().await.unwrap();
    there.get() == (1, 0)
}

#[tokio::test]
async fn each_mode_against_a_server_with_tls() {
    let server = PostgresServer::with_tls().await;
    let ca = trusting(&server);
    for (query, encrypted) in [
        ("", true),
        ("sslmode=disable", false),
        ("sslmode=prefer", true),
        ("sslmode=require", true),
        (&format!("sslmode=require&{ca}"), true),
        (&format!("sslmode=verify-ca&{ca}"), true),
        (&format!("sslmode=verify-full&{ca}"), true),
        (&ca, true),
        (&ca.replace("sslrootcert", "ca"), true),
    ] {
        assert_eq!(is_encrypted(&server, &url(&server, query)).await, encrypted, "{query}");
    }
}

#[tokio::test]
async fn each_mode_against_a_server_without_tls() {
    let (server, other) = (PostgresServer::start().await, PostgresServer::with_tls().await);
    for query in ["", "sslmode=prefer", "sslmode=disable"] {
        assert!(!is_encrypted(&server, &url(&server, query)).await, "{query}");
    }
    let ca = trusting(&other);
    for query in ["sslmode=require", &ca, &format!("sslmode=verify-ca&{ca}")] {
        let sentence = refused(&url(&server, query)).await;
        assert!(
            sentence.contains("server does not support TLS (set `ssl = on` there"),
            "{sentence}"
        );
    }
    assert_eq!(sessions(&server).await, (0, 0));
}

/// The system resolves `127.1`, and no certificate can have such a name. As libpq, only
/// `verify-full` needs one.
///
/// Red without: the address in place of a name in `server_name`.
#[tokio::test]
async fn a_host_that_no_certificate_can_name_is_reached_where_the_name_is_not_verified() {
    let server = PostgresServer::with_tls().await;
    let ca = trusting(&server);
    let at = |query: &str| url(&server, query).replace("localhost", "127.1");
    for query in ["", "sslmode=prefer", "sslmode=require", &format!("sslmode=verify-ca&{ca}")] {
        assert!(is_encrypted(&server, &at(query)).await, "{query}");
    }
    let sentence = refused(&at(&format!("sslmode=verify-full&{ca}"))).await;
    let expected = "no certificate can name the host 127.1: write it differently";
    assert!(sentence.contains(expected), "{sentence}");
}

/// Requests, the listener, the sessions that wait, and the probes for a pooler: the server admits
/// this user with TLS only.
#[tokio::test]
async fn every_connection_of_both_stores_is_encrypted() {
    let server = PostgresServer::with_tls().await;
    server.run("create role secured login superuser").await;
    server.admit("hostssl all secured 127.0.0.1/32 trust").await;
    for query in ["lock=lease", "lock=session"] {
        let query = format!("{query}&{}", trusting(&server));
        let url = url(&server, &query).replace("lockattr@", "secured@");
        let (one, other) = (manager(&url).await, manager(&url).await);
        let held = acquire(&one, "a").await;
        let waits = tokio::spawn(async move { acquire(&other, "a").await });
        let three = async || sessions(&server).await.0 >= 3;
        eventually("the waiter has a connection of its own", three).await;
        assert_eq!(sessions(&server).await.1, 0);
        held.release().await.unwrap();
        waits.await.unwrap().release().await.unwrap();
    }
    let plain = refused(&url(&server, "sslmode=disable").replace("lockattr@", "secured@")).await;
    assert!(plain.contains("no encryption"), "{plain}");
}

/// `127.1` is this machine, which the system knows and lockattr does not.
#[tokio::test]
async fn plaintext_to_another_machine_is_logged_once() {
    let events = capture_events();
    let server = PostgresServer::start().await;
    let at = |host: &str, query: &str| url(&server, query).replace("localhost", host);
    for url in [at("localhost", ""), at("127.0.0.1", ""), at("127.1", "sslmode=disable")] {
        assert!(!is_encrypted(&server, &url).await);
    }
    assert_eq!(events.count("not encrypted"), 0, "{:?}", events.all());
    for _ in 0..2 {
        assert!(!is_encrypted(&server, &at("127.1", "")).await);
    }
    assert_eq!(events.count("not encrypted"), 1, "{:?}", events.all());
    assert_eq!(events.count("sslmode=verify-full"), 1, "{:?}", events.all());
}
