//! Checks that nothing is left in the servers at the end.

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseRequest, Store};

use crate::client::{Habit, WireStore};
use crate::life::Life;
use crate::messages::Messages;
use crate::network::Network;

/// Asks each of these servers for each lock: it must be free, with an empty wait queue.
pub(crate) async fn audit(
    servers: Vec<String>,
    keys: Vec<LockKey>,
    messages: Messages,
) -> Vec<String> {
    let mut left = Vec::new();
    let (network, system) = Network::new();
    tokio::task::spawn_local(system.run());
    for server in servers {
        let store = WireStore::new(
            &server,
            network.clone(),
            messages.clone(),
            Life::default(),
            Habit::Right,
            Duration::from_secs(1),
        );
        for name in &keys {
            let key = name.name();
            match store.holder(name).await {
                Ok(None) => {}
                Ok(Some(holder)) => left.push(format!("{server}: `{key}` is held by {holder}")),
                Err(error) => left.push(format!("{server}: {error}")),
            }
            let claim = Arc::new(Claim::new(name.clone(), "service=audit"));
            let asked = AcquireRequest::new(claim.clone(), Duration::from_secs(1));
            match store.acquire(&asked).await {
                Ok(AcquireOutcome::Acquired { contended: false, .. }) => {}
                other => left.push(format!("{server}: `{key}` is not free: {other:?}")),
            }
            drop(store.release(&[ReleaseRequest::new(claim)]).await);
        }
    }
    left
}
