//! No error and no event repeats a password, even if the server does.

use std::io;

use lockattr::store::Credentials;
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Fault, Proxy, RedisServer, capture_events_from};
use tracing::Level;

use super::rotating;
use crate::redis::describe;

/// A server that does not know a command repeats its arguments.
///
/// Red without: `RESP3NotSupported` in `refused` of `endpoint.rs`.
#[tokio::test]
async fn a_server_that_repeats_the_login_is_not_quoted() {
    let events = capture_events_from(Level::TRACE);
    let server = RedisServer::builder().password("s3cret").start().await;
    let proxy = Proxy::start(server.addr()).await;
    let unknown = |command: &str, words: &str| {
        Fault::Answer(format!("ERR unknown command '{command}', with args beginning with: {words}"))
    };
    proxy.always("hello", unknown("HELLO", "'3' 'AUTH' 'default' 's3cret'"));
    // Such a server is used without RESP3.
    let url = server.url_through(&proxy);
    let manager = LockManager::connect(&url).await.unwrap();
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();

    proxy.always("auth", unknown("AUTH", "'s3cret'"));
    let rotating = rotating("default", "s3cret");
    for builder in [
        LockManager::builder().url(&url),
        LockManager::builder()
            .url(format!("redis://{}", proxy.addr()))
            .credentials(rotating.provider()),
    ] {
        let manager = builder.build().unwrap();
        let refused = manager.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
        let text = format!("{} {manager:?}", describe(&refused));
        assert!(matches!(refused, Error::Store { .. }) && !text.contains("s3cret"), "{text}");
    }
    assert!(!events.contains("s3cret"), "{:?}", events.all());
}

/// The provider's own error is the source, for the program to look at.
#[tokio::test]
async fn a_provider_that_fails_is_an_outage_with_its_error_as_the_source() {
    let server = RedisServer::start().await;
    let manager = LockManager::builder()
        .url(server.url())
        .credentials(|| async { Err::<Credentials, _>(io::Error::other("the vault is sealed")) });
    let manager = manager.build().unwrap();
    let refused = manager.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
    let Error::Store { source, .. } = &refused else { panic!("{refused:?}") };
    assert!(source.to_string().contains("credentials provider failed"), "{source}");
    assert!(describe(&refused).contains("the vault is sealed"), "{refused:?}");
}
