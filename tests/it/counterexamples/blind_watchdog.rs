//! A watchdog that renews the lock of another process.

use lockattr_tests::RedisServer;

use super::stage::{OURS, Stage, nothing_fails};

/// What a holder and its watchdog do.
const DURING: &[&str] = &["renew", "check", "renew", "check", "renew", "check"];

pub(super) const REPORTED: &[&str] = &["renewed while another held"];

/// The first process is stopped past its lease, and the second acquires the lock. Then the first
/// process and its watchdog continue.
async fn paused_past_its_lease(algorithm: &str) -> Vec<String> {
    let server = RedisServer::start().await;
    let mut stage = Stage::new(algorithm, vec![server.addr()]);
    let (first, second) = (stage.start_process(), stage.start_process());
    stage.expect_success(first, "acquire").await;
    stage.expect_success(first, "renew").await;
    stage.pause_past_its_lease(first, &server).await;
    stage.expect_success(second, "acquire").await;
    stage.resume(first);
    stage.order(first, "renew").await;
    stage.expect_success(second, "check").await;
    stage.expect_success(second, "release").await;
    stage.report(&server).await
}

#[tokio::test]
async fn it_is_right_when_nothing_fails() {
    assert_eq!(nothing_fails("blind-watchdog", DURING, &["release"]).await, [""; 0]);
}

#[tokio::test]
async fn a_paused_process_renews_the_next_holders_lock_and_believes_it_holds() {
    assert_eq!(paused_past_its_lease("blind-watchdog").await, REPORTED);
}

#[tokio::test]
async fn ours_renews_its_own_lock_only() {
    assert_eq!(paused_past_its_lease(OURS).await, [""; 0]);
    assert_eq!(nothing_fails(OURS, DURING, &["release"]).await, [""; 0]);
}
