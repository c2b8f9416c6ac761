//! Two owners with the same token.

use lockattr_tests::RedisServer;

use super::stage::{OURS, Stage};

pub(super) const REPORTED: &[&str] = &["released while another held", "two holders at once"];

/// The time at which the two clients ask.
const MILLISECOND: i64 = 1_700_000_000_000;

/// Two clients ask, by these clocks. The first acquires the lock and is stopped past its lease, and
/// the second acquires it. The first continues and releases, and a third client tries to acquire.
async fn paused_past_its_lease(algorithm: &str, clocks: [i64; 2]) -> Vec<String> {
    let server = RedisServer::start().await;
    let mut stage = Stage::new(algorithm, vec![server.addr()]);
    let [first, second] = clocks.map(|now| stage.start_process_with_clock(0, now));
    let third = stage.start_process();
    stage.expect_success(first, "acquire").await;
    assert_eq!(stage.order(second, "acquire").await, "no");
    stage.pause_past_its_lease(first, &server).await;
    stage.expect_success(second, "acquire").await;
    stage.release_late(first, second, third).await;
    stage.report(&server).await
}

/// Even a pause does no harm: only equal tokens do.
#[tokio::test]
async fn it_is_right_unless_two_clients_acquire_in_the_same_millisecond() {
    let clocks = [MILLISECOND, MILLISECOND + 1];
    assert_eq!(paused_past_its_lease("timestamp-token", clocks).await, [""; 0]);
}

#[tokio::test]
async fn of_two_clients_in_the_same_millisecond_one_deletes_the_others_lock() {
    let clocks = [MILLISECOND, MILLISECOND];
    assert_eq!(paused_past_its_lease("timestamp-token", clocks).await, REPORTED);
}

#[tokio::test]
async fn ours_has_unique_owner_tokens() {
    let clocks = [MILLISECOND, MILLISECOND];
    assert_eq!(paused_past_its_lease(OURS, clocks).await, [""; 0]);
}
