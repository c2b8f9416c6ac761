//! Leaders over a store that keeps no queue and notifies no process.

use super::*;
use crate::support::Unqueued;

/// Red without: the remaining lease in `campaign_again_at`, for a refusal without a place in a queue.
#[tokio::test(start_paused = true)]
async fn a_follower_takes_over_when_the_lease_ends_in_a_store_without_queues() {
    for asked_before in [0, 1, 2, 3] {
        let store = Arc::new(Unqueued::default());
        let [killed, follower] = [(); 2]
            .map(|()| LockManager::builder().store(store.clone()).build().expect("a good store"));
        let dies = term().renew(false).on_lost(OnLost::Ignore);
        let (lease, began) = (killed.acquire("scheduler", dies).await.unwrap(), Instant::now());
        sleep(Duration::from_millis(700 * asked_before)).await;
        let led = follower.lead("scheduler", term(), async |_term| began.elapsed());
        let after = led.await.unwrap();
        assert!(after >= 9 * SECOND && after < 9 * SECOND + SECOND / 10, "{after:?}");
        drop(lease);
    }
}
