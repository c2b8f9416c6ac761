//! Many callers at once, over a server that is slower than they are. Their requests wait in this
//! process until the server has answered others; that is not the server's silence.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use tokio::task::JoinSet;

/// A thousand tasks acquire and release locks of their own, while 20 leases of `ttl` are renewed.
/// None of them is lost, and no release fails.
pub(crate) async fn loses_nothing(manager: &LockManager, ttl: Duration) {
    let mut held = Vec::new();
    for n in 0..20 {
        let options = LockOptions::new().ttl(ttl);
        held.push(manager.acquire(format!("held {n}"), options).await.unwrap());
    }
    let mut tasks = JoinSet::new();
    for n in 0..1_000 {
        let manager = manager.clone();
        tasks.spawn(async move {
            for _ in 0..4 {
                let guard = manager.acquire(format!("key {n}"), LockOptions::new()).await;
                let guard = guard.unwrap_or_else(|error| panic!("key {n}: {error}"));
                guard.release().await.unwrap_or_else(|error| panic!("key {n}: {error}"));
            }
        });
    }
    tasks.join_all().await;
    for guard in held {
        guard.ensure_held().expect("renewed before all others");
        guard.release().await.expect("ours");
    }
}

/// 3,000 callers want locks of their own. Some of them get theirs. All others learn that no answer came in time, and not
/// that another holder has their lock.
pub(crate) async fn learns_of_no_holder(manager: &LockManager) {
    let mut tasks = JoinSet::new();
    for n in 0..3_000 {
        let manager = manager.clone();
        tasks.spawn(async move {
            match manager.acquire(format!("key {n}"), LockOptions::new()).await {
                Ok(guard) => guard.release().await.map(|()| true),
                Err(Error::Store { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        });
    }
    let outcomes: Result<Vec<_>, _> = tasks.join_all().await.into_iter().collect();
    let granted = outcomes.unwrap_or_else(|error| panic!("{error}"));
    assert!(granted.contains(&true) && granted.contains(&false));
}
