//! The options of a `redlock://` URL.

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Independents, patient, with_query};
use std::time::Duration;

use crate::support::assert_refused;

#[test]
fn an_invalid_url_is_refused_with_a_message() {
    assert_refused(&[
        ("redlock://h1/", "3 to 63 servers, not 1"),
        ("redlock://h1,h2/", "3 to 63 servers, not 2"),
        ("redlock://:s3cret@h1,h2,h1/", "names a server twice"),
        ("redlock://:s3cret@h1,h2,h1:6379/", "names a server twice"),
        ("redlock://:s3cret@h1,,h3/", "cannot be read"),
        ("redlock://h1,h2,h3/?max_ttl=5", "`max_ttl=5`"),
        ("redlock://h1,h2,h3/?durable=perhaps", "neither `true` nor `false`"),
        ("redlock://h1,h2,h3/?color=red", "`color`"),
        (
            "redlock://h1,h2,h3/?ttl=2m",
            "`ttl` is 120s, and this store allows leases of 60s at most",
        ),
        ("redlock://:s3cret@h1,h2,h3/db", "is invalid"),
        ("redis://:s3cret@h1,h2/", "takes one host"),
    ]);
}

#[tokio::test]
async fn a_manager_shows_its_servers_and_no_password() {
    let url = "redlock://user:s3cret@db-1:7001,db-2,[::1]:7003/2?max_ttl=5m";
    let builder = LockManager::builder().url(url);
    let shown = format!("{builder:?}");
    assert!(shown.contains("redlock://db-1:7001,db-2,[::1]:7003/2"), "{shown}");
    let manager = builder.build().unwrap();
    let shown = format!("{shown} {manager:?}");
    assert!(!shown.contains("s3cret") && shown.contains("db-1:7001"), "{shown}");
}

/// `localhost` is the first server again: two of its three names would make it a majority alone.
#[tokio::test]
async fn one_server_under_two_names_is_refused() {
    let servers = Independents::start(2).await;
    let [one, other] = [0, 1].map(|nth| servers.node(nth).addr());
    let again = one.replace("127.0.0.1", "localhost");
    assert_ne!(one, again, "it is reached by another name");
    let url = patient(&format!("redlock://{one},{again},{other}/"));
    let durable = with_query(&url, "durable=true");
    for url in [&url, &durable] {
        let error = LockManager::connect(url).await.unwrap_err();
        let Error::InvalidOptions(sentence) = &error else { panic!("{error:?}") };
        assert!(sentence.contains("names a server twice"), "{sentence}");
    }
    // A store that is built without a connection must not count that server twice either.
    let manager = LockManager::builder().url(&durable).build().unwrap();
    servers.kill(1);
    let outcome = manager.acquire("a", LockOptions::new().retry(0)).await;
    assert!(outcome.is_err(), "one server of three names granted it: {outcome:?}");
    assert_eq!(servers.node(0).cli().await.value("lock:a").await, None);
}

/// A lease longer than the time for which restarted servers wait could be granted twice.
#[tokio::test]
async fn leases_that_a_restart_would_not_outlast_are_refused() {
    let manager = LockManager::builder().url("redlock://h1,h2,h3/?max_ttl=30s").build().unwrap();
    let too_long = [
        LockOptions::new().ttl(Duration::from_secs(31)),
        LockOptions::new().hold_at_least(Duration::from_secs(31)),
    ];
    for options in too_long {
        let error = manager.acquire("a", options).await.unwrap_err();
        assert!(matches!(error, Error::InvalidOptions(_)), "{error:?}");
        assert!(error.to_string().contains("`max_ttl`"), "{error}");
    }
    let durable = LockManager::builder().url("redlock://h1,h2,h3/?durable=true&ttl=2m");
    durable.build().expect("what is on a disk is not forgotten");
}
