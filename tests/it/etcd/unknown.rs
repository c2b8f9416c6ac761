//! Requests whose replies are lost, and requests that take effect late.

use std::sync::Arc;

use lockattr::store::{Claim, EtcdStore, LockKey, ReleaseOutcome, Sharing, Subscriber};
use lockattr_tests::{Engine, Etcd, Wires, eventually, for_store, with_query};

use super::{acquire, claim, is_acquired, release};

const QUICK: &str = "response_timeout=300ms&connect_timeout=300ms&heartbeat=60s";

/// Sends a request whose reply is lost: the connection ends once `executed` holds.
async fn without_reply<T: std::fmt::Debug>(
    wires: &Wires,
    request: impl Future<Output = Result<T, String>>,
    executed: impl AsyncFnMut() -> bool,
) {
    wires.swallow_replies();
    let cut = async {
        eventually("it is executed", executed).await;
        wires.cut().await;
    };
    tokio::join!(request, cut).0.expect_err("no reply arrives");
    wires.pass().await;
}

#[tokio::test]
async fn an_entry_whose_answer_was_lost_is_found_again() {
    let etcd = Etcd::shared().await;
    let wires = Wires::before(etcd).await;
    let store = EtcdStore::open(&for_store(&wires.url_with("heartbeat=1h"))).unwrap();
    let (warm, claim) = (claim("warm"), claim("lost"));
    acquire(&store, &warm).await.unwrap();
    let executed = async || etcd.keys("etcd:lost/").await.len() == 1;
    without_reply(&wires, acquire(&store, &claim), executed).await;
    let made = etcd.keys("etcd:lost/").await;
    let revision = async || {
        let told = etcd.ctl(&["get", "etcd:lost/", "--prefix", "-w", "fields"]).await;
        let of_it = told.lines().find(|line| line.starts_with("\"CreateRevision\""));
        of_it.expect("it is there").to_owned()
    };
    let first = revision().await;
    let granted = async || is_acquired(&store, &claim).await;
    eventually("it is connected again", granted).await;
    assert_eq!(etcd.keys("etcd:lost/").await, made);
    assert_eq!(revision().await, first, "it kept its place in the queue");
    assert_eq!(release(&store, &claim).await, Ok(ReleaseOutcome::Released));
    release(&store, &warm).await.unwrap();
    assert_eq!(etcd.keys("etcd:lost/").await, [""; 0]);
}

/// An operator has removed one of the two entries that a claim made without knowing it. It goes to
/// the end of both queues, and keeps no place in one of them for which it would wait itself.
///
/// Red without: the removal in `Core::enter`.
#[tokio::test]
async fn a_claim_that_lost_one_of_its_unknown_entries_enters_all_queues_again() {
    let etcd = Etcd::shared().await;
    let wires = Wires::before(etcd).await;
    let store = EtcdStore::open(&for_store(&wires.url_with("heartbeat=1h"))).unwrap();
    let key = |name: &str| LockKey::new("etcd:torn:", name).expect("a good key");
    let subscriber = Subscriber::new(|_| {});
    let together = Claim::of(&subscriber, key("1"), [key("2")], Sharing::Exclusive, "service=test");
    let (warm, together) = (claim("warm torn"), Arc::new(together));
    acquire(&store, &warm).await.unwrap();
    let made = async || etcd.keys("etcd:torn:").await;
    without_reply(&wires, acquire(&store, &together), async || made().await.len() == 2).await;
    etcd.ctl(&["del", &made().await[0]]).await;
    let granted = async || is_acquired(&store, &together).await;
    eventually("it is connected again", granted).await;
    let told = etcd.ctl(&["get", "etcd:torn:", "--prefix", "-w", "fields"]).await;
    let created: Vec<_> =
        told.lines().filter(|line| line.starts_with("\"CreateRevision\"")).collect();
    assert!(created.len() == 2 && created[0] == created[1], "not made together: {told}");
    assert_eq!(release(&store, &together).await, Ok(ReleaseOutcome::Released));
    release(&store, &warm).await.unwrap();
    assert_eq!(made().await, [""; 0]);
}

/// A release writes the session's key again, so that no earlier request takes effect after it. If
/// that reply is lost, the store does not know the revision of its own key.
///
/// Red without: either `set_key_revision` that takes the revision from a reply.
#[tokio::test]
async fn a_session_goes_on_after_the_reply_about_its_key_was_lost() {
    let etcd = Etcd::shared().await;
    for releases_first in [true, false] {
        let wires = Wires::before(etcd).await;
        let store = EtcdStore::open(&for_store(&wires.url_with("heartbeat=1h"))).unwrap();
        let [warm, lost, next] = ["warm fence", "fence", "fence next"].map(claim);
        acquire(&store, &warm).await.unwrap();
        let session = etcd.lease_of("etcd:warm fence/").await;
        let made = async || etcd.keys("etcd:fence/").await.len() == 1;
        without_reply(&wires, acquire(&store, &lost), made).await;
        let connected = async || acquire(&store, &warm).await.is_ok();
        eventually("it is connected again", connected).await;
        let of_session = etcd.keys("lockattr/session/").await;
        let key = of_session.iter().find(|key| key.ends_with(&session)).expect("the session's key");
        let version = async || {
            let told = etcd.ctl(&["get", key, "-w", "fields"]).await;
            told.lines().find(|line| line.starts_with("\"Version\"")).map(str::to_owned)
        };
        let before = version().await;
        let rewritten = async || version().await != before;
        without_reply(&wires, release(&store, &lost), rewritten).await;
        let released = async || release(&store, &lost).await.is_ok();
        if releases_first {
            eventually("released", released).await;
        }
        let granted = async || is_acquired(&store, &next).await;
        eventually("the next claim is granted", granted).await;
        assert_eq!(etcd.lease_of("etcd:fence next/").await, session, "in the same session");
        eventually("released", released).await;
        for claim in [&next, &warm] {
            assert_eq!(release(&store, claim).await, Ok(ReleaseOutcome::Released));
        }
        assert_eq!(etcd.keys("etcd:fence").await, [""; 0]);
        assert_eq!(etcd.keys("etcd:warm fence/").await, [""; 0]);
    }
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
        let [warm, next, claim] = ["warm", "next", &format!("late{n}")].map(claim);
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
        let url = with_query(&etcd.url_at(&etcd.addrs()[asked..=asked]), QUICK);
        let at_it = EtcdStore::open(&for_store(&url)).unwrap();
        eventually("the member serves again", async || is_acquired(&at_it, &next).await).await;
        eventually("released", async || release(&at_it, &next).await.is_ok()).await;
        assert_eq!(etcd.keys("etcd:late").await, [""; 0]);
        eventually("released", async || release(&store, &warm).await.is_ok()).await;
    }
    assert_eq!(etcd.keys("etcd:late").await, [""; 0]);
}
