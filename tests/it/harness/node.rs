//! Tests of node processes: they take commands, and can be paused and killed.

use std::time::Duration;

use lockattr_tests::node;
use tokio::time::timeout;

#[tokio::test]
async fn it_replies_and_exits_with_its_stdin() {
    let mut node = node!("echo", prefix = "> ", times = 2);
    node.say("hello").await;
    assert_eq!(node.line().await, "> hello");
    assert_eq!(node.line().await, "> hello");
    assert!(node.finish().await.success());
}

#[tokio::test]
async fn it_can_be_paused_and_resumed() {
    let mut node = node!("echo");
    node.stop_signal();
    node.say("anyone?").await;
    let silence = timeout(Duration::from_millis(100), node.line()).await;
    assert!(silence.is_err(), "{silence:?}");
    node.continue_signal();
    assert_eq!(node.line().await, "anyone?");
}

#[tokio::test]
#[should_panic(expected = "the node ended without a reply")]
async fn a_killed_node_does_not_reply() {
    let mut node = node!("echo");
    node.kill();
    node.line().await;
}

#[tokio::test]
async fn a_wrong_verb_is_refused() {
    let mut node = node!("dance");
    assert_eq!(node.finish().await.code(), Some(2));
}
