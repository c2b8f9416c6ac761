//! A quorum of stores, some of which are down, hang, disagree, or come back empty.

mod answers;
mod cancellation;
mod chaos;
mod fencing;
mod mark_done;
mod nodes;
mod own_clients;
mod urls;
mod waiting;

use std::sync::Arc;

use lockattr::LockManager;
use lockattr::store::{AnyStore, RedlockStore};

use crate::support::Scripted;

/// In-memory stores with faults on request, and managers over all of them.
struct Scene {
    nodes: Vec<Arc<Scripted>>,
}

impl Scene {
    fn of(nodes: usize) -> Self {
        Self { nodes: (0..nodes).map(|_| Scripted::new()).collect() }
    }

    fn store(&self) -> Arc<RedlockStore> {
        self.store_of(0..self.nodes.len())
    }

    /// Returns a quorum store that can reach only the nodes `seen`.
    fn store_of(&self, seen: impl IntoIterator<Item = usize>) -> Arc<RedlockStore> {
        let seen: Vec<_> = seen.into_iter().collect();
        let nodes = self.nodes.iter().enumerate().map(|(n, node)| match seen.contains(&n) {
            true => AnyStore::from(node.clone()),
            false => crate::support::down().into(),
        });
        Arc::new(RedlockStore::new(nodes).expect("enough nodes"))
    }

    fn manager(&self) -> LockManager {
        manager(self.store())
    }
}

fn manager(store: Arc<RedlockStore>) -> LockManager {
    LockManager::builder().store(store).build().expect("a good store")
}
