//! Fencing tokens over nodes with independent counters only grow, whichever majority issued them.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use lockattr::FencingToken;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, RedlockStore, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Sharing, Store, Subscriber,
};

use super::Scene;
use crate::support::Fate;

const TTL: Duration = Duration::from_secs(10);
/// A counter that the clock does not reach during the test, but close enough for a hint.
static FAR: LazyLock<u64> = LazyLock::new(|| {
    let year_2024 = SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200);
    u64::try_from((year_2024.elapsed().unwrap() + Duration::from_secs(3000)).as_micros()).unwrap()
});
/// A counter in the year 2100, out of reach of any hint.
const FARTHER: u64 = 2_400_000_000_000_000;

fn claim(key: &str) -> Arc<Claim> {
    Arc::new(Claim::new(LockKey::new("lock:", key).unwrap(), "service=fencing"))
}

async fn number(store: &impl Store, claim: &Arc<Claim>) -> FencingToken {
    match store.acquire(&AcquireRequest::new(claim.clone(), TTL)).await {
        Ok(AcquireOutcome::Acquired { fencing, .. }) => fencing,
        other => panic!("{other:?}"),
    }
}

async fn locked_once(store: &Arc<RedlockStore>) -> FencingToken {
    let claim = claim("stock");
    let fencing = number(&**store, &claim).await;
    let released = store.release(&[ReleaseRequest::new(claim)]).await.remove(0).unwrap();
    assert_eq!(released, ReleaseOutcome::Released);
    fencing
}

/// Sets the counter of one node.
async fn counts_from(scene: &Scene, node: usize, counter: u64) {
    let claim = claim("another");
    let request = AcquireRequest::new(claim.clone(), TTL).hint(counter);
    scene.nodes[node].acquire(&request).await.unwrap();
    scene.nodes[node].release(&[ReleaseRequest::new(claim)]).await.remove(0).unwrap();
}

/// One round trip is enough as long as the nodes agree.
#[tokio::test(start_paused = true)]
async fn nodes_that_agree_are_sent_one_request() {
    let scene = Scene::of(5);
    let store = scene.store();
    let mut last = None;
    for n in 1..=50 {
        let token = locked_once(&store).await;
        assert!(Some(token) > last, "{token:?} after {last:?}");
        last = Some(token);
        for node in &scene.nodes {
            assert_eq!(node.calls().acquires, n);
            assert!(node.calls().renewals.is_empty(), "a second trip");
        }
    }
}

/// The counterexample to taking the greatest answer: the counters are 5, 0 and 0. One client locks
/// on A and B and gets 6; the next locks on B and C and gets 2.
#[tokio::test(start_paused = true)]
async fn counters_that_differ_do_not_let_a_token_go_back() {
    for far in 0..3 {
        let scene = Scene::of(3);
        counts_from(&scene, far, *FAR).await;
        let all = [0, 1, 2].map(|away| scene.store_of((0..3).filter(move |&node| node != away)));
        let mut last = None;
        for round in 0..12 {
            // Each majority in turn, in changing order.
            let store = &all[(round * round + far) % 3];
            let token = locked_once(store).await;
            assert!(Some(token) > last, "{token:?} after {last:?}, round {round}");
            last = Some(token);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_reached_no_majority_is_not_issued() {
    let scene = Scene::of(3);
    counts_from(&scene, 0, *FAR).await;
    scene.nodes[2].acquires(&[Fate::Refused, Fate::Answered]);
    scene.nodes[1].renewals(&[Fate::Refused, Fate::Answered]);
    let outcome = scene.store().acquire(&AcquireRequest::new(claim("stock"), TTL)).await;
    assert!(outcome.unwrap_err().to_string().contains("fencing token"));
    for node in &scene.nodes {
        assert!(node.holder("stock").await.is_none(), "it was not released");
    }

    // The manager asks again.
    scene.nodes[2].acquires(&[Fate::Refused, Fate::Answered]);
    scene.nodes[1].renewals(&[Fate::Refused, Fate::Answered]);
    let guard = scene.manager().acquire("stock", lockattr::LockOptions::new()).await.unwrap();
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    for node in &scene.nodes {
        assert!(node.holder("stock").await.is_none(), "it was left behind");
    }
}

/// A node whose answer was lost may have granted only after another client was issued the number
/// that is now written back to it.
#[tokio::test(start_paused = true)]
async fn a_node_whose_answer_was_lost_does_not_count_for_the_write_back() {
    let scene = Scene::of(3);
    counts_from(&scene, 0, *FAR).await;
    scene.nodes[2].acquires(&[Fate::ReplyLost]);
    scene.nodes[1].renewals(&[Fate::Refused]);
    let outcome = scene.store().acquire(&AcquireRequest::new(claim("stock"), TTL)).await;
    assert!(outcome.unwrap_err().to_string().contains("fencing token"));
    assert!(scene.nodes[2].calls().renewals.is_empty(), "it was sent the request");
}

/// Each attempt has another owner. A late request of an earlier attempt neither releases nor
/// acquires anything for the attempt that now holds the lock.
#[tokio::test(start_paused = true)]
async fn a_request_of_an_earlier_attempt_that_comes_late_harms_no_later_one() {
    let scene = Scene::of(3);
    for node in &scene.nodes[..2] {
        node.acquires(&[Fate::Refused, Fate::Answered]);
    }
    let (store, claim) = (scene.store(), claim("stock"));
    store.acquire(&AcquireRequest::new(claim.clone(), TTL)).await.unwrap_err();
    number(&*store, &claim).await;
    // The release of the first attempt arrives late, over a connection that was believed closed.
    for node in &scene.nodes {
        let late = [ReleaseRequest::new(claim.clone()).without_notification()];
        assert_eq!(node.release(&late).await.remove(0).unwrap(), ReleaseOutcome::NotHeld);
        assert!(node.holder("stock").await.is_some(), "a late request freed the lock");
    }
    let renewed = store.renew(&[RenewRequest::new(claim.clone(), TTL)]).await.remove(0).unwrap();
    assert_eq!(renewed, RenewOutcome::Renewed);
    store.release(&[ReleaseRequest::new(claim)]).await.remove(0).unwrap();
    for node in &scene.nodes {
        assert!(node.holder("stock").await.is_none(), "it was left behind");
    }
}

/// A number on which a majority agrees is the token, even if another node is ahead.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_ahead_alone_costs_no_second_trip() {
    let scene = Scene::of(5);
    counts_from(&scene, 4, *FAR).await;
    let store = scene.store();
    let mut last = None;
    for _ in 0..5 {
        let token = locked_once(&store).await;
        assert!(Some(token) > last && token < FencingToken::from_counter(*FAR), "{token:?}");
        last = Some(token);
    }
    assert!(scene.nodes.iter().all(|node| node.calls().renewals.is_empty()), "a second trip");
}

/// Other keys share a node's counter. Their tokens make the nodes differ, which costs a round trip
/// but keeps the order.
#[tokio::test(start_paused = true)]
async fn tokens_grow_while_other_keys_count_on_single_nodes() {
    let scene = Scene::of(5);
    let store = scene.store();
    let mut last = None;
    for round in 0..40_u64 {
        counts_from(&scene, (round % 5) as usize, *FAR + round * round).await;
        let token = locked_once(&store).await;
        assert!(Some(token) > last, "{token:?} after {last:?}");
        last = Some(token);
    }
}

/// The clock in the hint and the other nodes make up for a node that lost its counter.
#[tokio::test(start_paused = true)]
async fn a_node_that_forgot_its_counter_does_not_let_a_token_go_back() {
    let scene = Scene::of(3);
    let mut last = None;
    for round in 0..20 {
        // Each time another process: a single process would also count its own requests.
        let token = locked_once(&scene.store()).await;
        assert!(Some(token) > last, "{token:?} after {last:?}");
        last = Some(token);
        scene.nodes[round % 3].restart();
        scene.nodes[(round + 1) % 3].restart();
    }
}

/// Two clients that share a lock hold it on the same nodes at the same time. A number that one got
/// on one node and the other got on another must not become the token of both.
#[tokio::test(start_paused = true)]
async fn two_sharers_that_overtake_each_other_have_different_tokens() {
    for sharing in [Sharing::Shared, Sharing::Permits(2)] {
        let scene = Scene::of(5);
        for node in 0..5 {
            counts_from(&scene, node, *FAR).await;
        }
        // The first client reaches two nodes first, and the second reaches two others first.
        let later = Fate::Slow(Duration::from_millis(10));
        let first = [Fate::Answered, later, Fate::Answered];
        let second = [later, Fate::Answered, Fate::Answered];
        let neither = [Fate::Refused, Fate::Refused, Fate::Answered];
        for (node, fates) in scene.nodes.iter().zip([first, first, second, second, neither]) {
            node.acquires(&fates);
            // The write-backs arrive after both clients have been granted the lock.
            node.renewals(&[later]);
        }
        let share = || {
            let key = LockKey::new("lock:", "stock").unwrap();
            let subscriber = Arc::new(Subscriber::new(|_| {}));
            Arc::new(Claim::of(&subscriber, key, [], sharing, "service=fencing"))
        };
        let (claims, stores) = ([share(), share()], [scene.store(), scene.store()]);
        let numbers =
            tokio::join!(number(&*stores[0], &claims[0]), number(&*stores[1], &claims[1]));
        assert_ne!(numbers.0, numbers.1, "{sharing:?}");
        // A client that comes after both has a greater token.
        for (store, claim) in stores.iter().zip(claims) {
            store.release(&[ReleaseRequest::new(claim)]).await.remove(0).unwrap();
        }
        assert!(locked_once(&stores[0]).await > numbers.0.max(numbers.1), "{sharing:?}");
    }
}

/// As after a client whose clock was years ahead, before hints had a limit: the nodes have counted
/// far beyond every clock, each to another number.
#[tokio::test(start_paused = true)]
async fn counters_that_are_years_ahead_still_give_sharers_different_tokens() {
    let scene = Scene::of(3);
    for (node, counter) in scene.nodes.iter().zip((FARTHER..).step_by(1 << 40)) {
        let (claim, number) = (claim("another"), FencingToken::from_counter(counter));
        node.acquire(&AcquireRequest::new(claim.clone(), TTL)).await.unwrap();
        let told = [RenewRequest::new(claim.clone(), TTL).fenced(number)];
        node.renew(&told).await.remove(0).unwrap();
        node.release(&[ReleaseRequest::new(claim)]).await.remove(0).unwrap();
    }
    let key = LockKey::new("lock:", "stock").unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    let share =
        || Arc::new(Claim::of(&subscriber, key.clone(), [], Sharing::Shared, "service=fencing"));
    let store = scene.store();
    let (one, other) = (number(&*store, &share()).await, number(&*store, &share()).await);
    assert!(other > one && one > FencingToken::from_counter(FARTHER), "{one:?}, {other:?}");
}
