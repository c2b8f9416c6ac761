//! Calls that run once in a period. Paused clock, in memory; `store_contract` has the stores.

mod guards;
mod nights;
mod unconfirmed;

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use lockattr::testing::TestLocks;
use lockattr::{Error, LockManager, LockOptions, LostReason, Mode, OnLost, Release};
use lockattr_tests::{capture_events, force_release};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// What a body failed with.
#[derive(Debug, PartialEq)]
struct Failed;

fn options() -> LockOptions {
    LockOptions::new().ttl(9 * SECOND).wait(Duration::ZERO)
}

async fn run(
    manager: &LockManager,
    result: Result<u32, Failed>,
) -> Result<Result<u32, Failed>, Error> {
    let body = async move |_: &lockattr::Lease| {
        sleep(60 * SECOND).await;
        result
    };
    manager.with_lock_once_per("invoices", 22 * HOUR, options(), body).await
}

/// Red without: `release_done`, or the time since the acquisition.
#[tokio::test(start_paused = true)]
async fn a_key_is_done_for_its_period_from_the_acquisition_on_for_the_whole_fleet() {
    let locks = TestLocks::new();
    let began = Instant::now();
    assert_eq!(run(locks.manager(), Ok(7)).await.unwrap(), Ok(7));
    for manager in [locks.manager().clone(), locks.another_process()] {
        let again = run(&manager, Ok(8)).await;
        let Err(Error::Done { key, until }) = again else { panic!("{again:?}") };
        assert_eq!(key, "invoices");
        let left = until.duration_since(SystemTime::now()).unwrap();
        let expected = 22 * HOUR - 60 * SECOND;
        assert!(left <= expected && left > expected - 60 * SECOND, "{left:?}");
        assert!(manager.try_acquire("invoices", options()).await.unwrap().is_none());
    }
    // Also when the process has ended.
    locks.manager().shutdown().await;
    let other = locks.another_process();
    sleep((22 * HOUR - SECOND).saturating_sub(began.elapsed())).await;
    assert!(matches!(run(&other, Ok(8)).await, Err(Error::Done { .. })));
    sleep(SECOND).await;
    assert_eq!(run(&other, Ok(9)).await.unwrap(), Ok(9));
}

/// Red without: the output that decides (`is_ok`).
#[tokio::test(start_paused = true)]
async fn a_body_that_failed_was_dropped_panicked_or_was_lost_leaves_the_key_open_at_once() {
    let locks = TestLocks::new();
    let (here, there) = (locks.manager().clone(), locks.another_process());
    assert_eq!(run(&here, Err(Failed)).await.unwrap(), Err(Failed));
    locks.assert_free("invoices");

    assert!(timeout(SECOND, run(&here, Ok(1))).await.is_err());
    locks.until_free("invoices").await;

    let panics = tokio::spawn({
        let here = here.clone();
        async move {
            let body = async |_: &lockattr::Lease| -> Result<u32, Failed> { panic!("as planned") };
            here.with_lock_once_per("invoices", HOUR, options(), body).await
        }
    });
    assert!(panics.await.is_err());
    locks.until_free("invoices").await;

    let lost = {
        let here = here.clone();
        tokio::spawn(async move { run(&here, Ok(1)).await })
    };
    locks.until_held("invoices").await;
    locks.expire("invoices");
    assert!(matches!(lost.await.unwrap(), Err(Error::Lost { .. })));
    assert_eq!(run(&there, Ok(2)).await.unwrap(), Ok(2));
}

/// Red without: the answer `NotHeld` as an error, with its report: two would have ended `Ok`.
#[tokio::test(start_paused = true)]
async fn a_body_whose_lock_was_taken_meanwhile_is_lost_and_marks_nothing() {
    let (locks, events) = (TestLocks::new(), capture_events());
    let got = locks.manager().with_lock_once_per("invoices", HOUR, options(), async |_| {
        drop(locks.steal("invoices"));
        Ok::<_, Failed>(())
    });
    let got = got.await;
    assert!(matches!(got, Err(Error::Lost { reason: LostReason::Taken, .. })), "{got:?}");
    assert_eq!(events.count("lock lost"), 1, "{:?}", events.all());
    locks.assert_free("invoices");
}

/// Red without: the arm for a done holder in `wait_in_store`: they would wait for ten seconds.
#[tokio::test(start_paused = true)]
async fn callers_that_wait_learn_that_the_key_is_done_when_it_is() {
    let locks = TestLocks::new();
    let first = {
        let manager = locks.manager().clone();
        tokio::spawn(async move { run(&manager, Ok(7)).await })
    };
    locks.until_held("invoices").await;
    let patient = LockOptions::new().ttl(9 * SECOND).wait(HOUR);
    let mut waiting = Vec::new();
    for manager in [locks.manager().clone(), locks.manager().clone(), locks.another_process()] {
        let patient = patient.clone();
        waiting.push(tokio::spawn(async move {
            let got =
                manager.with_lock_once_per("invoices", HOUR, patient, async |_| Ok::<_, Failed>(8));
            got.await
        }));
    }
    locks.until_waiting("invoices", 3).await;
    assert_eq!(first.await.unwrap().unwrap(), Ok(7));
    let done = Instant::now();
    for waits in waiting {
        assert!(matches!(waits.await.unwrap(), Err(Error::Done { .. })));
    }
    assert!(done.elapsed() < SECOND, "{:?}", done.elapsed());
    // No caller stays in the queue.
    assert!(force_release(&locks.another_process(), "invoices").await.unwrap());
    locks.assert_free("invoices");
}

/// The first of them that asks tells the others.
///
/// Red without: the error for the waiters of a done key in `local_queue.rs`: each would send a request.
#[tokio::test(start_paused = true)]
async fn callers_of_one_process_learn_by_one_request_that_the_key_is_done() {
    let locks = TestLocks::new();
    let first = tokio::spawn({
        let manager = locks.manager().clone();
        async move { run(&manager, Ok(7)).await }
    });
    locks.until_held("invoices").await;
    let other = locks.another_process();
    let patient = || LockOptions::new().ttl(9 * SECOND).wait(HOUR);
    let call = || {
        let (other, patient) = (other.clone(), patient());
        tokio::spawn(async move {
            let body = async |_: &lockattr::Lease| Ok::<_, Failed>(8);
            other.with_lock_once_per("invoices", HOUR, patient, body).await
        })
    };
    let waiting: Vec<_> = (0..50).map(|_| call()).collect();
    locks.until_waiting("invoices", 50).await;
    sleep(59 * SECOND).await;
    let before = locks.requests();
    assert_eq!(first.await.unwrap().unwrap(), Ok(7));
    for waits in waiting {
        assert!(matches!(waits.await.unwrap(), Err(Error::Done { .. })));
    }
    // The mark, the question, and the end of its place in the queue.
    assert!(locks.requests() - before <= 5, "{} requests", locks.requests() - before);
}

/// One that waited behind a failure runs at once.
#[tokio::test(start_paused = true)]
async fn callers_that_wait_run_after_a_failure() {
    let locks = TestLocks::new();
    let first = {
        let manager = locks.manager().clone();
        tokio::spawn(async move { run(&manager, Err(Failed)).await })
    };
    locks.until_held("invoices").await;
    for manager in [locks.manager().clone(), locks.another_process()] {
        let patient = LockOptions::new().wait(HOUR);
        let fails =
            manager.with_lock_once_per("invoices", HOUR, patient, async |_| Err::<u32, _>(Failed));
        assert_eq!(fails.await.unwrap(), Err(Failed));
    }
    assert_eq!(first.await.unwrap().unwrap(), Err(Failed));
}

/// A body that was longer than the period has nothing to keep.
#[tokio::test(start_paused = true)]
async fn a_body_longer_than_its_period_releases_the_lock() {
    let locks = TestLocks::new();
    let got = locks.manager().with_lock_once_per("invoices", 30 * SECOND, options(), async |_| {
        sleep(60 * SECOND).await;
        Ok::<_, Failed>(1)
    });
    assert_eq!(got.await.unwrap(), Ok(1));
    locks.assert_free("invoices");
}

/// Red without: the repetition in `release_done`.
#[tokio::test(start_paused = true)]
async fn a_mark_without_an_answer_is_repeated_while_the_lease_lasts() {
    let locks = TestLocks::new();
    let got = locks.manager().with_lock_once_per("invoices", HOUR, options(), async |_| {
        locks.lose_answers();
        Ok::<_, Failed>(1)
    });
    let mends = async {
        sleep(2 * SECOND).await;
        locks.mend();
    };
    let (got, ()) = tokio::join!(got, mends);
    assert_eq!(got.unwrap(), Ok(1));
    assert!(matches!(run(&locks.another_process(), Ok(2)).await, Err(Error::Done { .. })));

    // It never arrives: the caller must not take its work for done.
    let other = TestLocks::new();
    let got = other.manager().with_lock_once_per("invoices", HOUR, options(), async |_| {
        other.cut();
        Ok::<_, Failed>(1)
    });
    let got = timeout(60 * SECOND, got).await.expect("it gives up with its lease");
    assert!(matches!(&got, Err(Error::Store { .. })), "{got:?}");
    assert!(got.unwrap_err().to_string().contains("did not confirm"));
    other.mend();
    other.until_free("invoices").await;
}

/// Red without: each of the checks in `once_per` and `check_once`.
#[tokio::test(start_paused = true)]
async fn options_that_do_not_fit_are_refused_before_the_body_runs() {
    let locks = TestLocks::new();
    let runs = Cell::new(0);
    let o = LockOptions::new;
    for (period, options, part) in [
        (Duration::ZERO, o(), "`once_per` is zero"),
        (367 * 24 * HOUR, o(), "366 days"),
        (HOUR, o().mode(Mode::Shared), "`mode`"),
        (HOUR, o().permits(1), "`permits`"),
        (HOUR, o().release(Release::Background), "`release = background`"),
        (HOUR, o().on_lost(OnLost::Ignore), "`on_lost = ignore`"),
    ] {
        let got = locks.manager().with_lock_once_per("invoices", period, options, async |_| {
            runs.set(runs.get() + 1);
            Ok::<_, Failed>(())
        });
        let got = got.await;
        let Err(Error::InvalidOptions(why)) = got else { panic!("{part}: {got:?}") };
        assert!(why.contains(part), "{part}: {why}");
    }
    let inside =
        locks.manager().with_lock("invoices", o(), async |_| run(locks.manager(), Ok(1)).await);
    assert!(matches!(inside.await.unwrap(), Err(Error::InvalidOptions(_))));
    assert_eq!(runs.get(), 0);
    locks.assert_nothing_left().await;
}

/// Red without: `began` as the origin of the period: the second run would mark nothing.
#[tokio::test(start_paused = true)]
async fn the_period_of_a_lock_that_was_cached_counts_from_its_own_body() {
    let locks = TestLocks::with(LockManager::builder().linger(60 * SECOND)).unwrap();
    let period = 30 * SECOND;
    let run = async |result: Result<u32, Failed>| {
        let body = async move |_: &lockattr::Lease| result;
        locks.manager().with_lock_once_per("invoices", period, options(), body).await
    };
    assert_eq!(run(Err(Failed)).await.unwrap(), Err(Failed));
    sleep(40 * SECOND).await;
    assert_eq!(run(Ok(1)).await.unwrap(), Ok(1));
    sleep(29 * SECOND).await;
    assert!(matches!(run(Ok(2)).await, Err(Error::Done { .. })));
    sleep(2 * SECOND).await;
    assert_eq!(run(Ok(3)).await.unwrap(), Ok(3));
}

/// Red without: the arms for campaigns before that for a done key: no process would ever lead again.
#[tokio::test(start_paused = true)]
async fn a_campaign_for_a_key_that_is_done_waits_until_the_period_is_over() {
    let locks = TestLocks::new();
    let began = Instant::now();
    assert_eq!(run(locks.manager(), Ok(7)).await.unwrap(), Ok(7));
    let other = locks.another_process();
    other.lead("invoices", LockOptions::new(), async |_term| ()).await.unwrap();
    assert!(began.elapsed() >= 22 * HOUR && began.elapsed() < 22 * HOUR + 60 * SECOND);
}
