//! Operator functions: listing the held locks, and releasing a lock by force.

use lockattr::HeldLock;
use lockattr::store::Sharing::{Exclusive, Permits, Shared};
use lockattr_tests::eventually;

use super::asked::{acquired, claim, key, prefix, release};
use super::fleet::Manager;
use super::{AnyStore, SHORT, TTL};

async fn listed(store: &AnyStore) -> Vec<HeldLock> {
    let mut held = store.held_locks(&prefix()).await.unwrap();
    held.sort_by(|one, other| one.key.cmp(&other.key));
    held
}

fn keys(held: &[HeldLock]) -> Vec<&str> {
    held.iter().map(|held| held.key.as_str()).collect()
}

pub(super) async fn held_locks_are_listed_and_nothing_else(store: AnyStore) {
    assert_eq!(listed(&store).await, []);
    let (here, there) = (Manager::on(&store), Manager::on(&store));
    let (holder, first, second) = (here.claim_for("a"), here.claim_for("a"), there.claim_for("a"));
    let all = here.claim_shared(&["all/b", "all%2Fb", "all*?[c]"], Exclusive);
    let (gone, ended) = (here.claim_for("gone"), claim("ended"));
    let (fencing, _) = holder.acquire().await;
    first.enqueue().await;
    second.enqueue().await;
    all.acquire().await;
    gone.acquire().await;
    gone.release().await;
    acquired(&store, &ended, SHORT).await;
    let is_over = async || store.holder(ended.key()).await.unwrap().is_none();
    eventually(TTL, "its lease ends", is_over).await;

    let held = listed(&store).await;
    assert_eq!(keys(&held), ["a", "all%2Fb", "all*?[c]", "all/b"]);
    let a = &held[0];
    assert_eq!((a.holders, a.shared, a.waiting), (1, false, 2));
    assert_eq!(a.holder.service.as_deref(), Some("a contract"));
    assert_eq!(a.holder.function.as_deref(), Some("suite::test"));
    assert!(a.holder.since.is_some());
    assert!(a.holder.remaining.is_some_and(|left| left <= TTL && left > TTL / 2));
    assert!(a.fencing_token.is_none_or(|token| token == fencing), "another token");
    assert!(held[1..].iter().all(|held| held.waiting == 0 && held.holders == 1));

    // A prefix is matched literally, and the rest of the name is the key.
    let with = |more: &str| [&prefix(), more].concat();
    let under = store.held_locks(&with("all/")).await.unwrap();
    assert_eq!(keys(&under), ["b"]);
    let under = store.held_locks(&with("all*?[")).await.unwrap();
    assert_eq!(keys(&under), ["c]"]);
    assert_eq!(store.held_locks(&with("al?")).await.unwrap(), []);
    assert_eq!(store.held_locks(&with("a")).await.unwrap().len(), 3, "a lock has a key");

    for waiter in [&first, &second] {
        waiter.release().await;
    }
    holder.release().await;
    all.release().await;
    assert_eq!(listed(&store).await, []);
}

pub(super) async fn sharers_of_a_lock_are_counted(store: AnyStore) {
    let manager = Manager::on(&store);
    let share = |key| manager.claim_shared(&[key], Shared);
    let [one, two, three] = ["shared"; 3].map(share);
    let alone = manager.claim_for("shared");
    for sharer in [&one, &two, &three] {
        sharer.acquire().await;
    }
    alone.enqueue().await;
    let held = listed(&store).await;
    assert_eq!(keys(&held), ["shared"]);
    assert_eq!((held[0].holders, held[0].shared, held[0].waiting), (3, true, 1));
    assert_eq!(held[0].holder.service.as_deref(), Some("a contract"));
    one.release().await;
    assert_eq!(listed(&store).await[0].holders, 2);
    for sharer in [two, three] {
        sharer.release().await;
    }
    alone.wait_for_grant().await;
    let held = listed(&store).await;
    assert_eq!((held[0].holders, held[0].shared, held[0].waiting), (1, false, 0));
    alone.release().await;
    assert_eq!(listed(&store).await, []);
}

pub(super) async fn holders_of_permits_are_counted(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two, waits] = ["permits"; 3].map(|key| manager.claim_shared(&[key], Permits(2)));
    one.acquire().await;
    two.acquire().await;
    waits.enqueue().await;
    let held = listed(&store).await;
    assert_eq!((held[0].holders, held[0].shared, held[0].waiting), (2, true, 1));
    assert!(store.force_release(&key("permits")).await.unwrap());
    waits.wait_for_grant().await;
    assert!(!one.is_holder().await && !two.is_holder().await);
    waits.release().await;
    assert_eq!(listed(&store).await, []);
}

pub(super) async fn a_force_released_lock_goes_to_the_next_in_the_queue(store: AnyStore) {
    let manager = Manager::on(&store);
    let [holder, first, second] = [(); 3].map(|()| manager.claim_for("evicted"));
    let (fencing, _) = holder.acquire().await;
    first.enqueue().await;
    second.enqueue().await;
    assert!(store.force_release(&key("evicted")).await.unwrap());
    let grant = first.wait_for_grant().await;
    assert!(grant.fencing > fencing, "the next holder has a greater token");
    assert!(!holder.is_holder().await, "it is notified");
    assert!(!holder.release().await, "it cannot release what it lost");
    assert!(first.is_holder().await && !second.is_holder().await);
    assert!(first.release().await);
    second.wait_for_grant().await;
    assert!(second.release().await);
    assert_eq!(store.holder(&key("evicted")).await.unwrap(), None);
}

pub(super) async fn force_release_of_a_free_lock_does_nothing(store: AnyStore) {
    assert!(!store.force_release(&key("free")).await.unwrap());
    let first = claim("free");
    acquired(&store, &first, TTL).await;
    assert!(store.force_release(first.key()).await.unwrap());
    let is_free = async || store.holder(first.key()).await.unwrap().is_none();
    eventually(TTL, "it is free", is_free).await;
    assert!(!store.force_release(first.key()).await.unwrap(), "once");
    release(&store, &first).await;
    let next = claim("free");
    acquired(&store, &next, TTL).await;
    release(&store, &next).await;
}

pub(super) async fn force_release_of_a_shared_lock_ends_all_sharers(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two] = ["all"; 2].map(|key| manager.claim_shared(&[key], Shared));
    let alone = manager.claim_for("all");
    let (fencing, _) = one.acquire().await;
    two.acquire().await;
    alone.enqueue().await;
    assert!(store.force_release(&key("all")).await.unwrap());
    assert!(alone.wait_for_grant().await.fencing > fencing);
    assert!(!one.is_holder().await && !two.is_holder().await);
    assert!(!one.release().await && !two.release().await);
    assert!(alone.is_holder().await);
    assert!(alone.release().await);
}

pub(super) async fn a_claim_for_several_keys_loses_all_with_one(store: AnyStore) {
    let manager = Manager::on(&store);
    let both = manager.claim_shared(&["x", "y"], Exclusive);
    let (x, y) = (manager.claim_for("x"), manager.claim_for("y"));
    both.acquire().await;
    x.enqueue().await;
    assert!(store.force_release(&key("x")).await.unwrap());
    x.wait_for_grant().await;
    assert!(!both.is_holder().await, "it is notified");
    both.release().await;
    assert!(x.is_holder().await, "what went to another stays with it");
    let is_free = async || y.try_acquire().await;
    eventually(TTL, "the other is free too", is_free).await;
    x.release().await;
    y.release().await;
}

/// The claim is at the head of one queue. It holds nothing until its turn comes in the other queue.
pub(super) async fn a_claim_that_waits_for_several_keys_holds_none(store: AnyStore) {
    let manager = Manager::on(&store);
    let (holder, both) =
        (manager.claim_for("taken"), manager.claim_shared(&["first", "taken"], Exclusive));
    holder.acquire().await;
    both.enqueue().await;
    let held = listed(&store).await;
    assert_eq!(keys(&held), ["taken"]);
    assert_eq!(held[0].waiting, 1);
    assert!(!store.force_release(&key("first")).await.unwrap(), "the lock is free");
    assert!(store.force_release(&key("taken")).await.unwrap());
    both.wait_for_grant().await;
    assert_eq!(keys(&listed(&store).await), ["first", "taken"]);
    assert!(both.release().await);
    assert!(!holder.release().await);
    assert_eq!(listed(&store).await, []);
}

pub(super) async fn locks_without_names_cannot_be_listed(store: AnyStore) {
    let held = claim("nameless");
    acquired(&store, &held, TTL).await;
    let refused = store.held_locks(&prefix()).await.unwrap_err().to_string();
    assert!(refused.contains("by its key") && refused.contains("leases"), "{refused}");
    release(&store, &held).await;
}
