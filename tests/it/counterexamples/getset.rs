//! A lease whose end each client judges by its own clock.

use lockattr_tests::RedisServer;

use super::stage::{OURS, Stage, TTL};

pub(super) const REPORTED: &[&str] = &["two holders at once", "leaked key"];

/// The second client's clock is ahead of the first's by `ahead` milliseconds. Its process dies at
/// the end.
async fn clocks_differ(algorithm: &str, ahead: i64) -> Vec<String> {
    let server = RedisServer::start().await;
    let mut stage = Stage::new(algorithm, vec![server.addr()]);
    let (first, second) = (stage.start_process(), stage.start_process_with_clock(ahead, 0));
    stage.expect_success(first, "acquire").await;
    stage.order(second, "acquire").await;
    stage.order(second, "check").await;
    stage.expect_success(first, "check").await;
    // Its value was overwritten, so it cannot release its lock.
    let given_back = stage.order(first, "release").await;
    if given_back == "no" {
        return stage.report(&server).await;
    }
    stage.expect_success(second, "acquire").await;
    stage.expect_success(second, "check").await;
    stage.expect_success(second, "release").await;
    stage.report(&server).await
}

/// Returns more milliseconds than a lease has.
fn far() -> i64 {
    i64::try_from(TTL.as_millis()).expect("a few seconds") * 10
}

#[tokio::test]
async fn it_is_right_while_clocks_agree() {
    assert_eq!(clocks_differ("getset", 0).await, [""; 0]);
}

#[tokio::test]
async fn a_client_whose_clock_is_ahead_takes_the_lock_from_its_holder() {
    assert_eq!(clocks_differ("getset", far()).await, REPORTED);
}

/// Ours reads no client's clock, so a wrong clock has no effect.
#[tokio::test]
async fn ours_is_right_under_the_same_steps() {
    assert_eq!(clocks_differ(OURS, far()).await, [""; 0]);
}
