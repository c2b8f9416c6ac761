//! Holders that have to report progress, among callers of one process.

use super::*;

/// A lock that is handed off begins no request, so its lease in the store would end with the silence of the holder
/// before.
///
/// Red without: `by_store` of calls with `progress_within`.
#[tokio::test(start_paused = true)]
async fn each_holder_of_one_process_has_its_own_bound_on_silence() {
    let locks = TestLocks::new();
    let options = term().progress_within(30 * SECOND).wait(600 * SECOND);
    let first = locks.manager().acquire("scheduler", options.clone()).await.unwrap();
    let waits = tokio::spawn({
        let (manager, options) = (locks.manager().clone(), options.clone());
        async move { manager.acquire("scheduler", options).await }
    });
    locks.until_waiting("scheduler", 1).await;
    sleep(20 * SECOND).await;
    first.release().await.unwrap();
    let second = waits.await.unwrap().unwrap();
    let acquired = Instant::now();
    timeout(60 * SECOND, second.lost()).await.expect("it has no bound");
    let silent = acquired.elapsed();
    assert!(silent > 29 * SECOND && silent <= 30 * SECOND, "{silent:?}");
    let lost = second.ensure_held();
    assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Silent, .. })), "{lost:?}");
    locks.until_free("scheduler").await;
    assert!(acquired.elapsed() <= 30 * SECOND + SECOND / 10, "{:?}", acquired.elapsed());
}

/// Red without: the comparison with the end of the lease in `is_silent`.
#[tokio::test(start_paused = true)]
async fn a_holder_whose_lease_ends_before_its_silence_has_lost_an_expired_lease() {
    let locks = TestLocks::new();
    let options = term().progress_within(30 * SECOND);
    let guard = locks.manager().acquire("scheduler", options).await.unwrap();
    locks.cut();
    timeout(10 * SECOND, guard.lost()).await.expect("its lease ends");
    let lost = guard.ensure_held();
    assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Expired, .. })), "{lost:?}");
}
