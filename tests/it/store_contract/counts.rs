//! Fencing tokens that grow, keys that are kept apart, and many concurrent callers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{AcquireOutcome, AcquireRequest};
use lockattr::{LockManager, LockOptions};
use tokio::task::JoinSet;

use super::asked::{acquired, claim, release};
use super::{AnyStore, LONGER, TTL};

pub(super) async fn fencing_tokens_grow_in_order(store: AnyStore) {
    let mut last = None;
    for _ in 0..100 {
        let claim = claim("fenced");
        let token = acquired(&store, &claim, TTL).await;
        assert!(Some(token) > last, "{token:?} after {last:?}");
        assert!(i64::from(token) > 0);
        last = Some(token);
        release(&store, &claim).await;
    }
}

pub(super) async fn odd_keys_are_kept_apart(store: AnyStore) {
    let keys = ["a", "A", "a ", " a", "a\0", "a\n", "ä", "a\u{308}", "{a}", "a:b", "%", "💰", "*"];
    let mut tokens = HashSet::new();
    for key in keys {
        tokens.insert(acquired(&store, &claim(key), TTL).await);
    }
    assert_eq!(tokens.len(), keys.len());
}

pub(super) async fn one_of_many_gets_it(store: AnyStore) {
    let mut askers = JoinSet::new();
    for _ in 0..32 {
        let store = store.clone();
        askers.spawn(async move {
            store.acquire(&AcquireRequest::new(claim("race"), TTL)).await.unwrap()
        });
    }
    let outcomes = askers.join_all().await;
    let granted =
        outcomes.iter().filter(|outcome| matches!(outcome, AcquireOutcome::Acquired { .. }));
    assert_eq!(granted.count(), 1);
}

/// The classic test of a lock: read, yield, write.
pub(super) async fn a_counter_under_the_lock_loses_nothing(store: AnyStore) {
    let manager = LockManager::builder()
        .store(store)
        .wait(LONGER)
        .retry_delay(Duration::from_millis(5))
        .build()
        .unwrap();
    let counter = Arc::new(std::sync::Mutex::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (manager, counter) = (manager.clone(), counter.clone());
        tasks.spawn(async move {
            for _ in 0..10 {
                let counter = counter.clone();
                let add = async move |_: &_| {
                    let seen = *counter.lock().unwrap();
                    tokio::task::yield_now().await;
                    *counter.lock().unwrap() = seen + 1;
                };
                manager.with_lock("counter", LockOptions::new(), add).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(*counter.lock().unwrap(), 80);
    assert_eq!(manager.holder("counter").await.unwrap(), None);
}
