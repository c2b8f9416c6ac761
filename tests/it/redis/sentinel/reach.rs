//! The ways to reach a master behind sentinels: URLs, logins, sentinels that are down; and no
//! output shows a password.

use std::collections::BTreeMap;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{RedisServer, Sentinels, assert_nothing_left, capture_events_from, in_time};
use tracing::Level;

use crate::redis::{RIGHTS, describe};
use crate::support::assert_refused;

async fn works(url: &str) {
    let manager = in_time(LockManager::connect(url)).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    guard.release().await.unwrap();
    assert!(!format!("{manager:?}").contains("s3cret"), "{manager:?}");
}

/// The error of a URL that cannot be connected.
async fn refused(url: &str) -> String {
    let error = LockManager::connect(url).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error:?}");
    describe(&error)
}

#[test]
fn an_invalid_url_is_refused_with_a_message() {
    assert_refused(&[
        ("redis+sentinel://h1,h2,h3", "names the master"),
        ("redis+sentinel://h1,h2,h3/", "names the master"),
        ("redis+sentinel://h1/name/0", "names the master"),
        ("redis+sentinel:///name", "a host is missing"),
        ("redis+sentinel://h1,,h3/name", "a host is missing"),
        ("redis+sentinel://h1/name?db=x", "`db`"),
        ("redis+sentinel://h1/name?tls=yes", "`tls`"),
        ("redis+sentinel://h1/name?sentinel_user=x", "`sentinel_pass`"),
        ("redis+sentinel://h1/name?user=x", "`user`"),
        ("redis+sentinel://h1/name?replicas=-1", "`replicas=-1`"),
        ("redis+sentinel://h1/%FF", "UTF-8"),
        ("redis://h1,h2/", "one host"),
        ("redis://h1/?sentinel_pass=s3cret", "unknown"),
        ("redis+sentinel://h1/name?sentinel_pass=s3c&s3cret=x", "unknown"),
    ]);
}

#[tokio::test]
async fn with_passwords_for_the_servers_and_for_the_sentinels() {
    let events = capture_events_from(Level::TRACE);
    let server = RedisServer::builder().password("s3cret %/@");
    let sentinels = Sentinels::builder().servers(server).sentinel_password("s3cret too &=");
    let sentinels = sentinels.start().await;
    works(&sentinels.url_with("sentinel_pass=s3cret+too+%26%3D")).await;
    works(&sentinels.url_with("sentinel_pass=s3cret+too+%26%3D&db=2")).await;
    let unknown = [sentinels.url(), sentinels.url_with("sentinel_pass=s3cret+wrong")];
    for url in &unknown {
        let text = refused(url).await;
        assert!(text.contains("none of the sentinels replied"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    let wrong = sentinels.url_with("sentinel_pass=s3cret+too+%26%3D");
    let (_, hosts) = wrong.rsplit_once('@').unwrap();
    let text = refused(&format!("redis+sentinel://:s3cret@{hosts}")).await;
    assert!(text.contains("WRONGPASS") || text.contains("AuthenticationFailed"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    let builder = format!("{:?}", LockManager::builder().url(&wrong));
    assert!(!builder.contains("s3cret"), "{builder}");
    assert!(!events.contains("s3cret"), "{:?}", events.all());
    assert_nothing_left(&sentinels).await;
}

/// The rights that the docs of `RedisStore` name.
#[tokio::test]
async fn users_with_the_least_rights_are_enough() {
    let server = RedisServer::builder().user("locker", "s3cret", &format!("{RIGHTS} +role +wait"));
    let sentinels = Sentinels::builder().servers(server).start().await;
    let rights = "ACL SETUSER finder on >s3cret resetkeys resetchannels &+switch-master -@all \
                  +hello +ping +subscribe +sentinel|master \
                  +sentinel|get-master-addr-by-name";
    let rights: Vec<_> = rights.split_whitespace().collect();
    for sentinel in sentinels.sentinels() {
        sentinel.cli().await.query::<()>(&rights).await;
    }
    let url = sentinels.url_with("sentinel_user=finder&sentinel_pass=s3cret&replicas=1");
    let url = url.replace("redis+sentinel://", "redis+sentinel://locker:s3cret@");
    works(&url).await;
    let denied = async |server: &RedisServer| {
        let log: Vec<BTreeMap<String, redis::Value>> =
            server.cli().await.query(&["ACL", "LOG"]).await;
        // The client's name and version, an optional message to servers from 7.2 on; and the
        // release commands of newer servers, without which a script releases.
        let spare = ["client|setinfo", "delex", "delifeq"];
        let log = log.iter().map(|entry| format!("{:?}", entry["object"]));
        log.filter(|object| !spare.iter().any(|name| object.contains(name))).collect::<Vec<_>>()
    };
    for server in sentinels.sentinels().iter().chain([sentinels.master().await]) {
        assert_eq!(denied(server).await, [""; 0], "a right is missing");
    }
    assert_nothing_left(&sentinels).await;
}

#[tokio::test]
async fn a_name_that_no_sentinel_knows_is_a_store_error() {
    let sentinels = Sentinels::start().await;
    let text = refused(&sentinels.url().replace("/lockattr", "/another")).await;
    assert!(text.contains("know no master called `another`"), "{text}");
}

#[tokio::test]
async fn sentinels_may_hang_and_go_down_one_by_one() {
    let sentinels = Sentinels::start().await;
    // One that hangs is not waited for.
    let url = sentinels.url_with("heartbeat=1h&connect_timeout=1h&response_timeout=1h");
    let [one, two, three] = sentinels.sentinels() else { panic!("three of them") };
    let old = LockManager::connect(&url).await.unwrap();

    one.stop_signal();
    works(&url).await;
    one.kill();
    works(&url).await;
    two.kill();
    works(&url).await;
    three.kill();
    let text = refused(&url).await;
    assert!(text.contains("none of the sentinels replied"), "{text}");
    // An existing connection goes on.
    let guard = old.acquire("a", LockOptions::new()).await.unwrap();
    guard.release().await.unwrap();
    two.revive().await;
    works(&url).await;
    assert_nothing_left(&sentinels.replicas().await[0]).await;
}
