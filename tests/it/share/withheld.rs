//! Results that are passed on to no caller.

use lockattr::{LostReason, OnLost};
use tokio::time::Instant;

use super::*;

/// It ran beside the body of another, which may have seen a different state.
///
/// Red without: the check of the lease after the body.
#[tokio::test(start_paused = true)]
async fn the_result_of_a_body_that_lost_its_lock_is_not_shared() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 2);
    let options = LockOptions::new().ttl(9 * SECOND).on_lost(OnLost::Ignore);
    let first = tokio::spawn({
        let (manager, runs) = (managers[0].clone(), runs.clone());
        async move {
            let body = async |lease: &lockattr::Lease| {
                let run = runs.0.fetch_add(1, Ordering::Relaxed) + 1;
                lease.lost().await;
                assert!(matches!(
                    lease.ensure_held(),
                    Err(Error::Lost { reason: LostReason::Taken, .. })
                ));
                sleep(SECOND).await;
                Ok::<_, Failed>(run)
            };
            manager.with_shared_result("price:42", options, body).await
        }
    });
    locks.until_held("price:42").await;
    let thief = locks.steal("price:42").noticed();
    let waiting = [runs.call(&managers[0], SECOND, Ok), runs.call(&managers[1], SECOND, Ok)];
    locks.until_waiting("price:42", 2).await;
    assert_eq!(first.await.unwrap().unwrap(), Ok(1));
    thief.release();
    for call in waiting {
        assert_eq!(call.await.unwrap().unwrap(), Ok(2));
    }
}

/// The call around it may undo its work.
///
/// Red without: `has_lock` in `run`.
#[tokio::test(start_paused = true)]
async fn the_result_of_a_nested_call_is_not_shared() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 2);
    let outer = managers[0].acquire("price:42", LockOptions::new()).await.unwrap();
    let waiting = [runs.call(&managers[0], SECOND, Ok), runs.call(&managers[1], SECOND, Ok)];
    locks.until_waiting("price:42", 2).await;
    let body = async |_: &lockattr::Lease| {
        sleep(SECOND).await;
        Ok::<_, Failed>(runs.0.fetch_add(1, Ordering::Relaxed) + 1)
    };
    let nested = managers[0].with_shared_result("price:42", LockOptions::new(), body);
    let nested = outer.scope(nested);
    assert_eq!(nested.await.unwrap(), Ok(1));
    outer.release().await.unwrap();
    for call in waiting {
        assert_eq!(call.await.unwrap().unwrap(), Ok(2));
    }
}

/// A note that the store got late would count as new: it is taken back.
///
/// Red without: the limit on the note, or its removal (`Drop` of `Note`).
#[tokio::test(start_paused = true)]
async fn a_result_whose_note_may_have_come_late_is_taken_back() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 2);
    let ended = Instant::now() + SECOND;
    let first = {
        let locks = locks.clone();
        runs.call(&managers[0], SECOND, move |run| {
            // The note arrives, and its answer does not.
            locks.lose_answers();
            Ok(run)
        })
    };
    locks.until_held("price:42").await;
    let waiting = runs.call(&managers[1], SECOND, Ok);
    locks.until_waiting("price:42", 1).await;
    tokio::time::sleep_until(ended + SECOND / 2).await;
    locks.mend();
    assert_eq!(first.await.unwrap().unwrap(), Ok(1));
    assert_eq!(waiting.await.unwrap().unwrap(), Ok(2));
}
