//! Redis forbids: a user lacks rights, or loses them.

use lockattr::{Error, LockManager};
use lockattr_tests::{RedisServer, assert_nothing_left, capture_events_from};
use tracing::Level;

use super::{connect, outlived, refused};
use crate::redis::RIGHTS;

/// The server's words; each version uses one of the later ones for a refusal inside a script.
const FORBIDDEN: [&str; 3] = ["NOPERM", "CAN'T RUN THIS COMMAND", "NO PERMISSIONS"];

async fn server_with_a_user() -> RedisServer {
    RedisServer::builder().user("locker", "s3cret", RIGHTS).start().await
}

#[tokio::test]
async fn while_its_user_may_run_no_scripts() {
    let server = server_with_a_user().await;
    let cli = server.cli().await;
    let manager = connect(&server.url_as("locker", "s3cret")).await;
    // A free lock is acquired without a script.
    let refuse = async || cli.query(&["ACL", "SETUSER", "locker", "-evalsha", "-set"]).await;
    let mend = async || cli.query(&["ACL", "SETUSER", "locker", "+evalsha", "+set"]).await;
    outlived(&server, &manager, &["NOPERM"], refuse, mend).await;
}

/// The outcome for a lock that cannot be read is unknown: neither contended, nor lost.
#[tokio::test]
async fn a_lock_that_may_not_be_read_is_neither_contended_nor_lost() {
    let server = server_with_a_user().await;
    let cli = server.cli().await;
    let manager = connect(&server.url_as("locker", "s3cret")).await;
    let refuse = async || {
        // A free lock is acquired without reading it.
        cli.query::<()>(&["ACL", "SETUSER", "locker", "-get", "-incr"]).await;
        assert!(matches!(manager.holder("kept").await, Err(Error::Store { .. })));
    };
    let mend = async || cli.query(&["ACL", "SETUSER", "locker", "+get", "+incr"]).await;
    outlived(&server, &manager, &FORBIDDEN, refuse, mend).await;
}

#[tokio::test]
async fn a_missing_right_is_an_error_and_locks_nothing() {
    let events = capture_events_from(Level::TRACE);
    let server = server_with_a_user().await;
    let cli = server.cli().await;
    let url = server.url_as("locker", "s3cret");
    for missing in
        ["+script|load", "+evalsha", "+set", "+time", "~lock:*", "~lockattr:*", "+exists"]
    {
        let left = RIGHTS.replace(missing, "");
        let mut words = vec!["ACL", "SETUSER", "locker", "reset", "on", ">s3cret"];
        words.extend(left.split_whitespace());
        cli.query::<()>(&words).await;
        let manager = LockManager::builder().url(&url).build().unwrap();
        let text = refused(&manager).await;
        let forbidden = FORBIDDEN.iter().any(|words| text.contains(words));
        assert!(forbidden, "{missing}: {text}");
        assert!(!text.contains("S3CRET"), "{text}");
        assert_nothing_left(&server).await;
    }
    assert!(!events.contains("s3cret"), "{:?}", events.all());
}
