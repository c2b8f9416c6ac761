//! Thousands of tasks at once, each with a lock of its own.

use lockattr_tests::{Engine, Etcd};

use crate::zookeeper::storm::storm;

/// The bound on the requests under way and the silence that counts from the last answer also have
/// tests of their own (`sequenced::tests`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_tasks_lose_no_lease_and_fail_no_release() {
    let etcd = Etcd::start().await;
    storm(&etcd.url_with("ttl=3s&session_timeout=8s&response_timeout=300ms")).await;
    assert_eq!(etcd.left().await, [""; 0]);
}
