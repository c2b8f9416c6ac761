//! The outcome follows the majority of the answers, whatever the minority does.

use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Store,
};
use lockattr::{Error, LockOptions};
use tokio::time::Instant;

use super::Scene;
use crate::support::Fate;

const TTL: Duration = Duration::from_secs(10);

fn claim(named: &str) -> std::sync::Arc<Claim> {
    let label = format!("service={named}");
    std::sync::Arc::new(Claim::new(LockKey::new("lock:", "stock").unwrap(), &label))
}

#[tokio::test(start_paused = true)]
async fn all_nodes_are_sent_the_request_even_if_a_majority_replies_at_once() {
    let scene = Scene::of(5);
    let manager = scene.manager();
    let guard = manager.acquire("stock", LockOptions::new()).await.unwrap();
    for node in &scene.nodes {
        assert_eq!(node.calls().acquires, 1);
    }
    guard.release().await.unwrap();
    for node in &scene.nodes {
        assert!(node.holder("stock").await.is_none(), "it was left behind");
    }
}

#[tokio::test(start_paused = true)]
async fn two_of_five_that_hang_cost_no_time() {
    let scene = Scene::of(5);
    for node in &scene.nodes[..2] {
        node.acquires(&[Fate::Hangs]);
        node.renewals(&[Fate::Hangs]);
        node.releases(&[Fate::Hangs]);
    }
    let (manager, began) = (scene.manager(), Instant::now());
    let guard = manager.acquire("stock", LockOptions::new()).await.unwrap();
    guard.extend(TTL).await.unwrap();
    assert!(manager.holder("stock").await.unwrap().is_some());
    guard.release().await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    for node in &scene.nodes[2..] {
        assert!(node.holder("stock").await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn three_of_five_that_are_down_are_an_outage_and_no_body_runs() {
    let scene = Scene::of(5);
    for node in &scene.nodes[..3] {
        node.acquires(&[Fate::Refused]);
    }
    let body = async |_: &_| panic!("the body ran without the lock");
    let options = LockOptions::new().retry(2);
    let error = scene.manager().with_lock("stock", options, body).await.unwrap_err();
    let Error::Store { ref key, .. } = error else { panic!("{error:?}") };
    assert_eq!(key, "stock");
    let text = error.to_string();
    assert!(format!("{error:?} {text}").contains("3 of 5 servers"), "{error:?}");
    // What the two reachable nodes granted is released.
    tokio::time::sleep(Duration::from_millis(1)).await;
    for node in &scene.nodes[3..] {
        assert!(node.holder("stock").await.is_none(), "it was left behind");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_no_contention_though_one_node_says_held() {
    let scene = Scene::of(5);
    let mine = claim("mine");
    scene.nodes[4].acquire(&AcquireRequest::new(mine, TTL)).await.unwrap();
    for node in &scene.nodes[..3] {
        node.acquires(&[Fate::Refused]);
    }
    let request = AcquireRequest::new(claim("other"), TTL);
    assert!(scene.store().acquire(&request).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn contention_names_the_holder_that_the_nodes_name() {
    let scene = Scene::of(5);
    scene.nodes[0].acquires(&[Fate::Refused]);
    let store = scene.store();
    store.acquire(&AcquireRequest::new(claim("first"), TTL)).await.unwrap();
    match store.acquire(&AcquireRequest::new(claim("second"), TTL)).await.unwrap() {
        AcquireOutcome::Held { holder: Some(holder), .. } => {
            assert_eq!(holder.service.as_deref(), Some("first"));
        }
        other => panic!("{other:?}"),
    }
    let holder = store.holder(&LockKey::new("lock:", "stock").unwrap()).await.unwrap();
    assert_eq!(holder.unwrap().service.as_deref(), Some("first"));
}

#[tokio::test(start_paused = true)]
async fn nodes_that_granted_a_refused_claim_are_released() {
    let scene = Scene::of(5);
    let holder = claim("holder");
    for node in &scene.nodes[..3] {
        node.acquire(&AcquireRequest::new(holder.clone(), TTL)).await.unwrap();
    }
    let store = scene.store();
    let outcome = store.acquire(&AcquireRequest::new(claim("late"), TTL)).await.unwrap();
    assert!(matches!(outcome, AcquireOutcome::Held { .. }), "{outcome:?}");
    for node in &scene.nodes[3..] {
        assert!(node.holder("stock").await.is_none(), "it was left behind");
    }
    for node in &scene.nodes[..3] {
        assert!(node.holder("stock").await.is_some(), "the late claim released it");
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_granted_a_refused_claim_without_an_answer_are_released() {
    let scene = Scene::of(3);
    scene.nodes[2].acquires(&[Fate::ReplyLost]);
    let holder = claim("holder");
    for node in &scene.nodes[..2] {
        node.acquire(&AcquireRequest::new(holder.clone(), TTL)).await.unwrap();
    }
    let outcome = scene.store().acquire(&AcquireRequest::new(claim("late"), TTL)).await.unwrap();
    assert!(matches!(outcome, AcquireOutcome::Held { .. }), "{outcome:?}");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(scene.nodes[2].holder("stock").await.is_none(), "it was left behind");
}

/// A majority of the *configured* nodes, not of those that answer.
#[tokio::test(start_paused = true)]
async fn a_renewal_needs_a_majority_of_all_nodes() {
    let scene = Scene::of(5);
    let (store, claim) = (scene.store(), claim("holder"));
    store.acquire(&AcquireRequest::new(claim.clone(), TTL)).await.unwrap();
    let renew = async || store.renew(&[RenewRequest::new(claim.clone(), TTL)]).await.remove(0);
    assert_eq!(renew().await.unwrap(), RenewOutcome::Renewed);
    for node in &scene.nodes[..2] {
        node.restart();
    }
    assert_eq!(renew().await.unwrap(), RenewOutcome::Renewed, "three have it");
    scene.nodes[2].renewals(&[Fate::Refused]);
    // Two nodes have the lock, two do not, one is silent: the outcome is unknown.
    renew().await.unwrap_err();
    for node in &scene.nodes[3..] {
        assert!(node.holder("stock").await.is_some(), "a failed renewal gave it back");
    }
    scene.nodes[2].renewals(&[Fate::Answered]);
    scene.nodes[2].restart();
    assert_eq!(renew().await.unwrap(), RenewOutcome::NotHeld);
    for node in &scene.nodes[3..] {
        assert!(node.holder("stock").await.is_some(), "a failed renewal gave it back");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_needs_a_majority_and_is_sent_to_all() {
    let scene = Scene::of(5);
    let (store, claim) = (scene.store(), claim("holder"));
    store.acquire(&AcquireRequest::new(claim.clone(), TTL)).await.unwrap();
    scene.nodes[0].releases(&[Fate::Late(TTL)]);
    scene.nodes[1].releases(&[Fate::ReplyLost]);
    let released = store.release(&[ReleaseRequest::new(claim.clone())]).await.remove(0);
    assert_eq!(released.unwrap(), ReleaseOutcome::Released);
    for node in &scene.nodes {
        assert!(node.holder("stock").await.is_none(), "it was left behind");
    }
    let again = store.release(&[ReleaseRequest::new(claim)]).await.remove(0);
    assert_eq!(again.unwrap(), ReleaseOutcome::NotHeld);
}

#[tokio::test(start_paused = true)]
async fn batches_are_counted_claim_by_claim() {
    let scene = Scene::of(3);
    let store = scene.store();
    let claims: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|key| std::sync::Arc::new(Claim::new(LockKey::new("lock:", key).unwrap(), "")))
        .collect();
    for (nodes, claim) in [(3, &claims[0]), (2, &claims[1]), (1, &claims[2])] {
        for node in &scene.nodes[..nodes] {
            node.acquire(&AcquireRequest::new(claim.clone(), TTL)).await.unwrap();
        }
    }
    let renewals: Vec<_> = claims.iter().map(|it| RenewRequest::new(it.clone(), TTL)).collect();
    let outcomes: Vec<_> = store.renew(&renewals).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes, [RenewOutcome::Renewed, RenewOutcome::Renewed, RenewOutcome::NotHeld]);
    scene.nodes[0].renewals(&[Fate::Refused]);
    let outcomes = store.renew(&renewals).await;
    assert!(matches!(outcomes[0], Ok(RenewOutcome::Renewed)));
    assert!(outcomes[1].is_err(), "one of the two left reports it");
    assert!(matches!(outcomes[2], Ok(RenewOutcome::NotHeld)));
}

/// Three nodes with two permits each have six. If each holder needed two, three could get in.
#[tokio::test(start_paused = true)]
async fn permits_need_more_than_a_majority() {
    use lockattr::store::{Sharing, Subscriber};
    let scene = Scene::of(3);
    let subscriber = Subscriber::new(|_| {});
    let permit = || {
        let key = LockKey::new("lock:", "stock").unwrap();
        std::sync::Arc::new(Claim::of(&subscriber, key, [], Sharing::Permits(2), "service=one"))
    };
    // Each of three clients reaches only two of the nodes.
    let mut holders = 0;
    let mut undo = Vec::new();
    for seen in [[0, 1], [1, 2], [2, 0]] {
        let claim = permit();
        let outcome = scene.store_of(seen).acquire(&AcquireRequest::new(claim.clone(), TTL)).await;
        holders += usize::from(matches!(outcome, Ok(AcquireOutcome::Acquired { .. })));
        undo.push(ReleaseRequest::new(claim));
    }
    assert!(holders <= 2, "{holders} have one of two permits");
    scene.store().release(&undo).await;
    for _ in 0..2 {
        let request = AcquireRequest::new(permit(), TTL);
        let outcome = scene.store().acquire(&request).await.unwrap();
        assert!(matches!(outcome, AcquireOutcome::Acquired { .. }), "{outcome:?}");
    }
    let outcome = scene.store().acquire(&AcquireRequest::new(permit(), TTL)).await.unwrap();
    assert!(matches!(outcome, AcquireOutcome::Held { .. }), "{outcome:?}");
}
