//! Certificates that must be refused: the error names the host and says what is wrong.

use std::path::Path;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::RedisServer;

use super::url;
use crate::over_tls::rotates;
use crate::redis::describe;

/// Red without: `explained` in `redis/tls/handshake.rs`.
#[tokio::test]
async fn a_refused_certificate_is_explained_with_the_host() {
    let other = RedisServer::builder().tls().start().await;
    let cases = [
        (RedisServer::builder().tls_of_another_name(), None, "is for another host ("),
        (RedisServer::builder().tls_expired(), None, "has expired"),
        // The harness gives all authorities one name.
        (
            RedisServer::builder().tls(),
            Some(&other),
            "is signed by an unknown authority, with the name",
        ),
        (RedisServer::builder().tls(), None, "is signed by an unknown authority"),
    ];
    for (nth, (server, authority, expected)) in cases.into_iter().enumerate() {
        let server = server.password("s3cret").start().await;
        let builder = LockManager::builder().url(server.tls_url());
        let of_the_system = nth == 3;
        let manager = match of_the_system {
            true => builder.build().unwrap(),
            false => builder.ca(authority.unwrap_or(&server).ca_path()).build().unwrap(),
        };
        let refused = manager.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
        let Error::Store { source, .. } = &refused else { panic!("{refused:?}") };
        let sentence = source.to_string();
        assert!(sentence.contains("the certificate of localhost "), "{sentence}");
        assert!(sentence.contains(expected), "{sentence}");
        assert!(!describe(&refused).contains("s3cret"), "{refused:?}");
        assert_eq!(server.cli().await.value("lock:a").await, None);
    }
}

/// Red without: that each handshake reads the files again (`tls/current.rs`).
#[tokio::test]
async fn what_is_rotated_in_the_files_is_in_the_next_connection() {
    let server = RedisServer::builder().tls_clients().start().await;
    let other = RedisServer::builder().tls_clients().start().await;
    let files = |of: &RedisServer| [of.ca_path(), of.client_cert_path(), of.client_key_path()];
    let at = |[ca, cert, key]: [&Path; 3]| url(&server, ca, cert, key);
    rotates(files(&other), files(&server), at).await;
}
