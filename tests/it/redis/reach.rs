//! The ways to reach a Redis: URL, socket, TLS, users, databases; and no output shows a password.

use super::RIGHTS;
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{RedisServer, assert_nothing_left, capture_events_from, node, with_query};
use tracing::Level;

use crate::support::assert_refused;

async fn works(url: &str) {
    let manager = LockManager::connect(url).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    assert!(manager.holder("a").await.unwrap().is_some());
    guard.release().await.unwrap();
    assert!(!format!("{manager:?}").contains("s3cret"), "{manager:?}");
}

#[tokio::test]
async fn over_a_unix_socket() {
    let server = RedisServer::start().await;
    works(&server.unix_url()).await;
    works(&with_query(&server.unix_url(), "db=3&prefix=x:")).await;
    assert_nothing_left(&server).await;
}

/// In a separate process, because rustls takes its trusted certificates from the environment.
#[tokio::test]
async fn over_tls() {
    let server = RedisServer::builder().tls().start().await;
    let error = LockManager::connect(&server.tls_url()).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "an unknown CA is refused: {error:?}");
    let mut node = node!("lock", url = server.tls_url(), trust = server.ca_path().display());
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    node.say("release").await;
    assert_eq!(node.line().await, "released");
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn with_a_password_a_user_and_a_database() {
    let server = RedisServer::builder().password("s3cret %/@").start().await;
    works(&server.url()).await;
    works(&server.url().replace("?", "2?")).await;

    let server = RedisServer::builder().user("locker", "s3cret", RIGHTS).start().await;
    works(&server.url_as("locker", "s3cret")).await;
    works(&server.url_as("locker", "s3cret").replace("?", "2?")).await;
}

#[tokio::test]
async fn a_database_number_keeps_locks_apart() {
    let server = RedisServer::start().await;
    let url = server.url();
    let (one, two) = (url.replace("?", "1?"), url.replace("?", "2?"));
    let one = LockManager::connect(&one).await.unwrap();
    let two = LockManager::connect(&two).await.unwrap();
    let held = one.acquire("a", LockOptions::new()).await.unwrap();
    two.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_refused_user_is_a_store_error_without_the_password() {
    let events = capture_events_from(Level::TRACE);
    let server = RedisServer::builder().password("right").start().await;
    let wrong = server.url_as("default", "s3cret");
    let error = LockManager::connect(&wrong).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error:?}");

    let manager = LockManager::builder().url(&wrong).build().unwrap();
    let acquired = manager.acquire("a", LockOptions::new().retry(1)).await.unwrap_err();
    let Error::Store { ref key, .. } = acquired else { panic!("{acquired:?}") };
    assert_eq!(key, "a");
    let builder = LockManager::builder().url(&wrong);
    let mut text = format!("{error} {error:?} {acquired} {acquired:?} {manager:?} {builder:?}");
    let mut source = std::error::Error::source(&acquired);
    while let Some(error) = source {
        text.push_str(&format!(" {error} {error:?}"));
        source = error.source();
    }
    assert!(!text.contains("s3cret"), "{text}");
    assert!(!events.contains("s3cret"), "{:?}", events.all());
    assert!(text.contains("WRONGPASS"), "{text}");
}

#[test]
fn an_invalid_url_is_refused_with_a_message() {
    assert_refused(&[
        ("", "cannot be read"),
        ("redis", "cannot be read"),
        ("mongodb://h/", "no store is called `mongodb://`"),
        ("memory://host", "neither host nor path"),
        ("memory://?color=red", "`color`"),
        ("memory://?ttl=10s&ttl=5s", "sets an option twice"),
        ("redis://:s3cret@127.0.0.1:1/?color=red", "`color`"),
        ("redis://:s3cret@127.0.0.1:1/?ttl=10", "`ttl=10`"),
        ("redis://:s3cret@127.0.0.1:1/?ttl=5ms", "`ttl` is 5ms"),
        ("redis://:s3cret@127.0.0.1:1/?retry_delay=0s", "`retry_delay` is zero"),
        ("redis://:s3cret@127.0.0.1:1/?wait=0s&retry=3", "`wait` is zero"),
        ("redis://u:12?s3cret@h/", "write `/` as `%2F`"),
        ("redis://u:12/s3cret@h/", "write `/` as `%2F`"),
        ("redis://u:12#s3cret@h/", "`#` as `%23`"),
        ("redis://u:12#s3cret", "write it as `%23`"),
        ("redis+unix:///sock?pass=a&s3cret", "an unknown option: there are"),
        ("redis://:s3cret@127.0.0.1:1/?connections=0", "`connections`"),
        ("redis://:s3cret@127.0.0.1:1/?heartbeat=0s", "`heartbeat`"),
        ("redis://:s3cret@127.0.0.1:1/db", "is invalid"),
        ("redis://:s3cret@[::1/", "cannot be read"),
    ]);
}
