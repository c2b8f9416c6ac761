//! A cluster behind etcd's own `grpc-proxy`, which numbers watches itself, ends a call with its
//! requests, and keeps a lease alive over a stream of its own.

use lockattr_tests::GrpcProxy;

use super::sessions::assert_lost_with_its_session;
use super::*;

#[tokio::test]
async fn a_session_behind_a_grpc_proxy_is_kept_alive() {
    let etcd = Etcd::shared().await;
    let proxy = GrpcProxy::before(etcd, &[]).await;
    let here = manager(&proxy.url_with(etcd, "heartbeat=500ms&prefix=behind:")).await;
    let held = here.acquire("kept", LockOptions::new()).await.unwrap();
    let session = etcd.lease_of("behind:kept/").await;
    is_kept_alive(etcd, &session).await;
    held.ensure_held().unwrap();
    held.release().await.unwrap();
    assert_eq!(etcd.keys("behind:").await, [""; 0]);
}

/// The proxy also puts a namespace before each key.
#[tokio::test]
async fn watches_behind_a_grpc_proxy_report_the_end_of_a_session_and_a_free_lock() {
    let etcd = Etcd::shared().await;
    let proxy = GrpcProxy::before(etcd, &["--namespace", "apart/"]).await;
    let url = |query: &str| proxy.url_with(etcd, query);
    assert_lost_with_its_session(etcd, url, "apart/").await;
}
