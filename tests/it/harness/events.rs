//! Tests of event capture: a test sees all events of its own runtime, and no others.

use lockattr_tests::{capture_events, capture_events_from};
use tracing::{Level, debug, error, info, warn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warnings_of_all_its_threads_are_captured_with_their_fields() {
    let events = capture_events();
    let background = tokio::spawn(async { warn!(key = "product:42", "the lease is lost") });
    background.await.unwrap();
    let blocking = tokio::task::spawn_blocking(|| error!(attempts = 3, "no response"));
    blocking.await.unwrap();
    info!("all is well");

    assert_eq!(events.count("the lease is lost key=\"product:42\""), 1);
    assert!(events.contains("no response attempts=3"));
    assert_eq!(events.all().len(), 2, "{events:?}");
    assert_eq!(events.all()[1].level, Level::ERROR);
}

#[test]
fn another_runtime_is_not_captured() {
    let quiet = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let loud = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let events = quiet.block_on(async { capture_events() });
    loud.block_on(async { warn!("from somewhere else") });
    warn!("from nowhere");
    assert!(events.is_empty(), "{events:?}");
}

#[tokio::test]
async fn finer_events_are_captured_on_request_and_only_ours() {
    let events = capture_events_from(Level::TRACE);
    debug!(target: "lockattr::store", "requested");
    debug!(target: "another_crate", "chatter");
    assert!(events.contains("requested"));
    assert!(!events.contains("chatter"));
}
