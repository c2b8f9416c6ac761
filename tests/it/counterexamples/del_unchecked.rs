//! A release of another process's lock.

use lockattr_tests::RedisServer;

use super::stage::{OURS, Stage, nothing_fails};

pub(super) const REPORTED: &[&str] = &["released while another held", "two holders at once"];

/// The first process is stopped past its lease, and the second acquires the lock. The first
/// continues and releases, and a third process tries to acquire.
async fn paused_past_its_lease(algorithm: &str) -> Vec<String> {
    let server = RedisServer::start().await;
    let mut stage = Stage::new(algorithm, vec![server.addr()]);
    let (first, second, third) =
        (stage.start_process(), stage.start_process(), stage.start_process());
    stage.expect_success(first, "acquire").await;
    stage.pause_past_its_lease(first, &server).await;
    stage.expect_success(second, "acquire").await;
    stage.release_late(first, second, third).await;
    stage.report(&server).await
}

#[tokio::test]
async fn it_is_right_when_nothing_fails() {
    assert_eq!(nothing_fails("del-unchecked", &["check"], &["check", "release"]).await, [""; 0]);
}

#[tokio::test]
async fn a_paused_process_deletes_the_next_holders_lock_and_lets_a_third_in() {
    assert_eq!(paused_past_its_lease("del-unchecked").await, REPORTED);
}

#[tokio::test]
async fn ours_leaves_the_next_holders_lock_alone() {
    assert_eq!(paused_past_its_lease(OURS).await, [""; 0]);
}
