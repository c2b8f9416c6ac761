//! Requests whose replies are lost, and requests that take effect late.

use std::time::Duration;

use lockattr::store::{AcquireOutcome, EtcdStore, ReleaseOutcome};
use lockattr_tests::{Engine, Etcd, Wires, eventually, for_store, with_query};

use super::{acquire, claim, release};

const QUICK: &str = "response_timeout=300ms&connect_timeout=300ms&heartbeat=60s";

#[tokio::test]
async fn an_entry_whose_answer_was_lost_is_found_again() {
    let etcd = Etcd::shared().await;
    let wires = Wires::before(etcd).await;
    let store = EtcdStore::open(&for_store(&wires.url_with("heartbeat=1h"))).unwrap();
    let (warm, claim) = (claim("warm"), claim("lost"));
    acquire(&store, &warm).await.unwrap();
    wires.swallow_replies();
    let executed = async {
        let made = async || etcd.keys("etcd:lost/").await.len() == 1;
        eventually("it is executed", made).await;
        wires.cut().await;
    };
    let (answer, ()) = tokio::join!(acquire(&store, &claim), executed);
    answer.expect_err("no reply arrives");
    wires.pass().await;
    let made = etcd.keys("etcd:lost/").await;
    let revision = async || {
        let told = etcd.ctl(&["get", "etcd:lost/", "--prefix", "-w", "fields"]).await;
        let of_it = told.lines().find(|line| line.starts_with("\"CreateRevision\""));
        of_it.expect("it is there").to_owned()
    };
    let first = revision().await;
    let granted =
        async || matches!(acquire(&store, &claim).await, Ok(AcquireOutcome::Acquired { .. }));
    eventually("it is connected again", granted).await;
    assert_eq!(etcd.keys("etcd:lost/").await, made);
    assert_eq!(revision().await, first, "it kept its place in the queue");
    assert_eq!(release(&store, &claim).await, Ok(ReleaseOutcome::Released));
    release(&store, &warm).await.unwrap();
    assert_eq!(etcd.keys("etcd:lost/").await, [""; 0]);
}

/// The first member is stopped with a request, another member gets the release, and then the first
/// continues.
#[tokio::test]
async fn a_request_that_arrives_after_its_release_creates_no_entry() {
    let etcd = Etcd::start().await;
    let (mut n, mut late) = (0, 0);
    while late < 5 {
        n += 1;
        let leader = etcd.leader().await;
        // Both are followers: a request that a leader has not read before it is deposed is lost.
        let (asked, other) = ((leader + 1) % 3, (leader + 2) % 3);
        let addrs = [asked, other].map(|nth| etcd.addrs()[nth].clone());
        let store = EtcdStore::open(&for_store(&with_query(&etcd.url_at(&addrs), QUICK))).unwrap();
        let (warm, claim) = (claim("warm"), claim(&format!("late{n}")));
        etcd.stop_signal(other);
        let connected = async || acquire(&store, &warm).await.is_ok();
        eventually("connected to the member that keeps running", connected).await;
        etcd.continue_signal(other);
        etcd.stop_signal(asked);
        // The other member executes it, if the store lost its connection before.
        let is_stopped = acquire(&store, &claim).await.is_err();
        let gone = async || release(&store, &claim).await == Ok(ReleaseOutcome::NotHeld);
        eventually("another member is sent the request", gone).await;
        etcd.continue_signal(asked);
        late += usize::from(is_stopped);
        // Nothing shows that the member has read the request. If it has not, this proves nothing, so it is repeated.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(etcd.keys("etcd:late").await, [""; 0]);
        eventually("released", async || release(&store, &warm).await.is_ok()).await;
    }
}
