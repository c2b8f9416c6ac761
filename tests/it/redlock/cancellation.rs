//! An acquisition dropped at any moment leaves nothing on any node.

use std::time::Duration;

use lockattr::LockOptions;
use tokio::time::{sleep, timeout};

use super::Scene;
use crate::support::Fate;

#[tokio::test(start_paused = true)]
async fn an_acquisition_dropped_at_any_moment_leaves_nothing() {
    for held in [false, true] {
        for after in 0..60_u64 {
            let scene = Scene::of(5);
            let (manager, other) = (scene.manager(), scene.manager());
            let holder = match held {
                true => Some(other.acquire("stock", LockOptions::new()).await.unwrap()),
                false => None,
            };
            for (n, node) in scene.nodes.iter().enumerate() {
                let late = Fate::Late(Duration::from_micros(400 + 200 * n as u64));
                node.acquires(&[late]);
                node.renewals(&[late]);
                node.releases(&[late]);
            }
            let after = Duration::from_micros(50 * after);
            drop(timeout(after, manager.acquire("stock", LockOptions::new())).await);
            sleep(Duration::from_millis(10)).await;
            if let Some(holder) = holder {
                holder.release().await.unwrap();
            }
            sleep(Duration::from_millis(10)).await;
            for (n, node) in scene.nodes.iter().enumerate() {
                assert!(node.holder("stock").await.is_none(), "node {n}, dropped after {after:?}");
                node.acquires(&[Fate::Answered]);
                node.releases(&[Fate::Answered]);
                let manager = node.manager();
                let guard = manager.try_acquire("stock", LockOptions::new()).await.unwrap();
                let guard = guard.unwrap_or_else(|| panic!("queued on node {n}, {after:?}"));
                guard.release().await.unwrap();
            }
        }
    }
}
