//! A second thread that enters the lock of the first.

use lockattr_tests::RedisServer;

use super::stage::{OURS, Stage};

pub(super) const REPORTED: &[&str] = &["two holders at once"];

/// While one thread of a process holds the lock, another thread asks for it.
async fn two_threads(algorithm: &str) -> Vec<String> {
    let server = RedisServer::start().await;
    let mut stage = Stage::new(algorithm, vec![server.addr()]);
    let process = stage.start_process();
    assert!(stage.order_chain(process, "acquire", 1).await.starts_with("yes"));
    let second = stage.order_chain(process, "acquire", 2).await;
    if second.starts_with("yes") {
        assert_eq!(stage.order_chain(process, "check", 2).await, "yes");
    }
    assert_eq!(stage.order_chain(process, "check", 1).await, "yes");
    assert_eq!(stage.order_chain(process, "release", 1).await, "yes");
    stage.report(&server).await
}

/// One thread after the other, with another process in between.
async fn one_after_the_other(algorithm: &str) -> Vec<String> {
    let server = RedisServer::start().await;
    let mut stage = Stage::new(algorithm, vec![server.addr()]);
    let (process, other) = (stage.start_process(), stage.start_process());
    for chain in [1, 2] {
        assert!(stage.order_chain(process, "acquire", chain).await.starts_with("yes"));
        assert_eq!(stage.order(other, "acquire").await, "no");
        assert_eq!(stage.order_chain(process, "check", chain).await, "yes");
        assert_eq!(stage.order_chain(process, "release", chain).await, "yes");
    }
    stage.expect_success(other, "acquire").await;
    stage.expect_success(other, "release").await;
    stage.report(&server).await
}

#[tokio::test]
async fn it_is_right_while_threads_come_one_after_the_other() {
    assert_eq!(one_after_the_other("count-field").await, [""; 0]);
}

#[tokio::test]
async fn a_second_thread_is_mistaken_for_the_first() {
    assert_eq!(two_threads("count-field").await, REPORTED);
}

#[tokio::test]
async fn ours_knows_one_call_chain_from_another() {
    assert_eq!(two_threads(OURS).await, [""; 0]);
    assert_eq!(one_after_the_other(OURS).await, [""; 0]);
}
