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

/// Functions that the body calls report through `lockattr::current()`, which is the innermost lock: also one of another
/// manager, or one that the body entered again.
///
/// Red without: the entries of the chain in `Lease::report_progress`.
#[tokio::test(start_paused = true)]
async fn progress_that_is_reported_inside_another_lock_counts_for_the_leader() {
    let locks = TestLocks::new();
    let (manager, another) = (locks.manager(), locks.another_process());
    let terms = Cell::new(0);
    let reports = async || {
        sleep(20 * SECOND).await;
        lockattr::current().expect("inside a lock").report_progress();
    };
    let options = term().progress_within(30 * SECOND);
    let leads = manager.lead("scheduler", options, async |_term| {
        terms.set(terms.get() + 1);
        let inner = async |_: &lockattr::Lease| {
            reports().await;
            manager.with_lock("job", term(), async |_| reports().await).await
        };
        manager.with_lock("job", term(), inner).await??;
        another.with_lock("other", term(), async |_| reports().await).await
    });
    timeout(600 * SECOND, leads).await.expect("no term ends by silence").unwrap().unwrap();
    assert_eq!(terms.get(), 1);
    locks.assert_nothing_left().await;
}
