//! Listing the held locks, and nothing else.

use lockattr::store::Sharing::{Exclusive, Permits, Shared};
use lockattr::{HeldLock, HolderId};

use super::TTL;
use crate::eventually::eventually;
use crate::subject::{Subject, acquired, acquired_briefly, force_release, release};
use crate::waiter::Manager;

async fn listed(store: &Subject) -> Vec<HeldLock> {
    let mut held = store.held_locks(store.prefix()).await.unwrap();
    held.sort_by(|one, other| one.key.cmp(&other.key));
    held
}

fn keys(held: &[HeldLock]) -> Vec<&str> {
    held.iter().map(|held| held.key.as_str()).collect()
}

pub(crate) async fn locks_are_listed_by_their_prefix(store: Subject) {
    assert_eq!(listed(&store).await, []);
    let names = ["b", "a", "all/b", "all%2Fb", "all*?[c]", "A", "%", "gone", "ended"];
    let claims = names.map(|name| store.claim(name));
    let mut tokens = Vec::new();
    for claim in &claims {
        tokens.push(match claim.key().as_str() {
            "ended" => acquired_briefly(&store, claim).await,
            _ => acquired(&store, claim, TTL).await,
        });
    }
    release(&store, &claims[7]).await;
    let is_over = async || store.holder(claims[8].key()).await.unwrap().is_none();
    eventually("its lease ends", is_over).await;

    let held = listed(&store).await;
    assert_eq!(keys(&held), ["%", "A", "a", "all%2Fb", "all*?[c]", "all/b", "b"]);
    let a = &held[2];
    assert_eq!((a.holders, a.shared, a.waiting), (1, false, 0));
    assert_eq!(a.holder.service.as_deref(), Some("a contract"));
    assert!(a.holder.remaining.is_some_and(|left| left <= TTL && left > TTL / 2));
    assert!(a.fencing_token.is_none_or(|token| token == tokens[1]), "another token");

    // A prefix is matched literally, and the rest of the name is the key.
    for (prefix, expected) in [("all/", "b"), ("all*?[", "c]")] {
        let under = store.held_locks(&[store.prefix(), prefix].concat()).await.unwrap();
        assert_eq!(keys(&under), [expected], "under the prefix {prefix:?}");
    }
    for none in ["al?", "al_/", "gone", "b"] {
        let under = store.held_locks(&[store.prefix(), none].concat()).await.unwrap();
        assert_eq!(under, [], "under the prefix {none:?}");
    }
}

pub(crate) async fn held_locks_are_listed_and_nothing_else(store: Subject) {
    assert_eq!(listed(&store).await, []);
    let (here, there) = (Manager::on(&store), Manager::on(&store));
    let (holder, first, second) = (here.claim_for("a"), here.claim_for("a"), there.claim_for("a"));
    let all = here.claim_shared(&["all/b", "all%2Fb", "all*?[c]"], Exclusive);
    let (gone, ended) = (here.claim_for("gone"), store.claim("ended"));
    let (fencing, _) = holder.acquire().await;
    first.enqueue().await;
    second.enqueue().await;
    all.acquire().await;
    gone.acquire().await;
    gone.release().await;
    acquired_briefly(&store, &ended).await;
    let is_over = async || store.holder(ended.key()).await.unwrap().is_none();
    eventually("its lease ends", is_over).await;

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
    let with = |more: &str| [store.prefix(), more].concat();
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

pub(crate) async fn sharers_of_a_lock_are_counted(store: Subject) {
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

pub(crate) async fn holders_of_permits_are_counted(store: Subject) {
    let manager = Manager::on(&store);
    let [one, two, waits] = ["permits"; 3].map(|key| manager.claim_shared(&[key], Permits(2)));
    one.acquire().await;
    two.acquire().await;
    waits.enqueue().await;
    let held = listed(&store).await;
    assert_eq!((held[0].holders, held[0].shared, held[0].waiting), (2, true, 1));
    assert!(force_release(&store, &store.key("permits")).await);
    waits.wait_for_grant().await;
    let holds = [one.is_holder().await, two.is_holder().await];
    assert_ne!(holds[0], holds[1], "one of them loses its permit");
    for held in [one, two, waits] {
        held.release().await;
    }
    assert_eq!(listed(&store).await, []);
}

/// The claim is at the head of one queue. It holds nothing until its turn comes in the other queue.
pub(crate) async fn a_claim_that_waits_for_several_keys_holds_none(store: Subject) {
    let manager = Manager::on(&store);
    let (holder, both) =
        (manager.claim_for("taken"), manager.claim_shared(&["first", "taken"], Exclusive));
    holder.acquire().await;
    both.enqueue().await;
    let held = listed(&store).await;
    assert_eq!(keys(&held), ["taken"]);
    assert_eq!(held[0].waiting, 1);
    let id = HolderId::of(both.claim.value());
    assert!(!store.force_release(&store.key("first"), &id).await.unwrap(), "the lock is free");
    assert!(force_release(&store, &store.key("taken")).await);
    both.wait_for_grant().await;
    assert_eq!(keys(&listed(&store).await), ["first", "taken"]);
    assert!(both.release().await);
    assert!(!holder.release().await);
    assert_eq!(listed(&store).await, []);
}
