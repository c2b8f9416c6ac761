//! What stores say that cannot list their locks, because a lock of a connection is no more than a
//! number.

use std::sync::Arc;

use lockattr::store::{AcquireRequest, Claim, LockKey};
use lockattr_contract::Fleet;

use super::TTL;
use super::fleet::{OnMysqlSessions, OnPostgresSessions};

async fn locks_without_names_cannot_be_listed<F: Fleet>() {
    let fleet = F::start().await;
    let (store, prefix) = (fleet.node(), fleet.prefix());
    let key = LockKey::new(&prefix, "nameless").expect("a good key");
    let request = AcquireRequest::new(Arc::new(Claim::new(key, "service=test")), TTL);
    store.acquire(&request).await.expect("an answer");
    let refused = store.held_locks(&prefix).await.unwrap_err().to_string();
    assert!(refused.contains("by its key") && refused.contains("leases"), "{refused}");
}

#[tokio::test]
async fn mysql_says_how_to_look_up_one_lock() {
    locks_without_names_cannot_be_listed::<OnMysqlSessions>().await;
}

#[tokio::test]
async fn postgres_says_how_to_look_up_one_lock() {
    locks_without_names_cannot_be_listed::<OnPostgresSessions>().await;
}
