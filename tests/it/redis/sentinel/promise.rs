//! The promise of `?replicas=1`: no lock is lost with the master.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Sentinels, assert_nothing_left};
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

/// The promise: each acquisition that was answered before its master was killed is at the new
/// master. Counted over four failovers, with at least 25 acquisitions each. In every other one, the
/// replicas are cut off for a tenth of a second before the kill, while acquisitions go on.
#[tokio::test]
async fn no_lock_is_lost_when_the_master_is_killed_right_after_the_acquire() {
    let sentinels = Sentinels::start().await;
    for round in 0..4 {
        let url = sentinels.url_with("replicas=1&connections=4");
        let manager = LockManager::connect(url).await.unwrap();
        let (count, over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let mut tasks = JoinSet::new();
        for task in 0..8 {
            let (manager, count, over) = (manager.clone(), count.clone(), over.clone());
            tasks.spawn(async move {
                let mut held = Vec::new();
                for nth in 0.. {
                    let key = format!("{round}-{task}-{nth}");
                    let acquired = manager.acquire(&key, LockOptions::new().retry(0)).await;
                    let (Ok(guard), false) = (acquired, over.load(Ordering::SeqCst)) else { break };
                    held.push((key, guard));
                    count.fetch_add(1, Ordering::SeqCst);
                }
                held
            });
        }
        let (old, replicas) = (sentinels.master().await, sentinels.replicas().await);
        let cli = old.cli().await;
        while count.load(Ordering::SeqCst) < 25 {
            yield_now().await;
        }
        if round % 2 == 1 {
            replicas.iter().for_each(|replica| replica.stop_signal());
            // Bytes in a socket's buffer would still arrive.
            cli.query::<u64>(&["CLIENT", "KILL", "TYPE", "replica"]).await;
            sleep(Duration::from_millis(100)).await;
        }
        over.store(true, Ordering::SeqCst);
        old.kill();
        if round % 2 == 1 {
            replicas.iter().for_each(|replica| replica.continue_signal());
        }
        let held: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        let cli = sentinels.failed_over(old).await.cli().await;
        for (key, guard) in &held {
            let there = cli.value(&format!("lock:{key}")).await;
            assert!(there.is_some(), "`{key}` was granted, and is not at the new master");
            guard.ensure_held().unwrap();
        }
        assert!(held.len() >= 25, "{} acquisitions were answered", held.len());
        drop(held);
        old.revive().await;
        sentinels.settled().await;
        assert_nothing_left(&sentinels).await;
    }
}
