//! A lock that is never released, because its holder died before it set the TTL.

use lockattr_tests::{Fault, Proxy, RedisServer, eventually};

use super::stage::{KEY, OURS, Stage, nothing_fails};

pub(super) const REPORTED: &[&str] = &["leaked key"];

/// The process is killed once its `SETNX` has taken effect, and before its `EXPIRE` arrives.
async fn killed_in_between(algorithm: &str) -> Vec<String> {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    proxy.always("expire", Fault::HoldRequest);
    let mut stage = Stage::new(algorithm, vec![proxy.addr()]);
    let first = stage.start_process();
    stage.send(first, "acquire 0").await;
    let cli = server.cli().await;
    eventually("it has the lock", async || cli.value(KEY).await.is_some()).await;
    stage.kill(first);
    stage.report(&server).await
}

#[tokio::test]
async fn it_is_right_when_nothing_fails() {
    // The second process is killed while it holds, but after both commands: its key expires.
    assert_eq!(nothing_fails("setnx-expire", &["check"], &[]).await, [""; 0]);
}

#[tokio::test]
async fn a_process_that_dies_between_two_commands_leaves_the_lock_forever() {
    assert_eq!(killed_in_between("setnx-expire").await, REPORTED);
}

#[tokio::test]
async fn ours_is_free_again_after_its_ttl() {
    assert_eq!(killed_in_between(OURS).await, [""; 0]);
}
