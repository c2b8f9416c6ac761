//! Fencing tokens that grow, keys that are kept apart, and many concurrent callers.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::store::AnyStore;
use lockattr::{LockManager, LockOptions};
use tokio::task::JoinSet;

use super::{MINUTE, TTL};
use crate::eventually::eventually;
use crate::subject::{Subject, acquired, is_acquired, release};

pub(crate) async fn fencing_tokens_grow_in_order(store: Subject) {
    let mut last = None;
    for _ in 0..100 {
        let claim = store.claim("fenced");
        let token = acquired(&store, &claim, TTL).await;
        assert!(Some(token) > last, "{token:?} after {last:?}");
        assert!(i64::from(token) > 0);
        last = Some(token);
        release(&store, &claim).await;
    }
}

pub(crate) async fn odd_keys_are_kept_apart(store: Subject) {
    let keys = ["a", "A", "a ", " a", "a\0", "a\n", "ä", "a\u{308}", "{a}", "a:b", "%", "💰", "*"];
    let mut tokens = HashSet::new();
    for key in keys {
        tokens.insert(acquired(&store, &store.claim(key), TTL).await);
    }
    assert_eq!(tokens.len(), keys.len());
}

pub(crate) async fn one_of_many_gets_it(store: Subject) {
    let mut askers = JoinSet::new();
    for _ in 0..32 {
        let (node, claim) = (AnyStore::clone(&store), store.claim("race"));
        askers.spawn(async move { is_acquired(&node, &claim, TTL).await });
    }
    let granted = askers.join_all().await.into_iter().filter(|granted| *granted).count();
    assert_eq!(granted, 1, "so many of 32 concurrent claims were granted one lock");
}

/// The classic test of a lock: read, yield, write. In two processes, of four callers each.
pub(crate) async fn a_counter_under_the_lock_loses_nothing(store: Subject) {
    let process = |node: &Subject| {
        let builder = LockManager::builder().store(AnyStore::clone(node)).prefix(node.prefix());
        builder
            .wait(TTL)
            .ttl(MINUTE)
            .retry_delay(Duration::from_millis(5))
            .build()
            .expect("a manager")
    };
    let processes = [process(&store), process(&store.another_node())];
    let counter = Arc::new(Mutex::new(0));
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let (manager, counter) = (processes[n % 2].clone(), counter.clone());
        tasks.spawn(async move {
            for _ in 0..10 {
                let counter = counter.clone();
                let add = async move |_: &_| {
                    let seen = *counter.lock().expect("no panic inside");
                    tokio::task::yield_now().await;
                    *counter.lock().expect("no panic inside") = seen + 1;
                };
                let done = manager.with_lock("counter", LockOptions::new(), add).await;
                done.expect("the lock");
            }
        });
    }
    tasks.join_all().await;
    let counted = *counter.lock().expect("no panic inside");
    assert_eq!(counted, 80, "two callers were inside at the same time");
    // One process may read late what the other one released.
    let is_free = async || processes[0].holder("counter").await.expect("an answer").is_none();
    eventually("the lock is free at the end", is_free).await;
}
