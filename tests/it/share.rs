//! Results that callers share. Paused clock, in memory; `fleet` has real servers and processes.

mod fleet;
mod functions;
mod pair;
mod values;
mod withheld;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockattr::testing::TestLocks;
use lockattr::{Error, LockManager, LockOptions, Mode, distributed_lock};
use lockattr_tests::capture_events;
use tokio::task::JoinHandle;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// What a body failed with.
#[derive(Clone, Debug, PartialEq)]
struct Failed;

/// Counts the runs of a body; each returns its number.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU32>);

impl Runs {
    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn call<T>(
        &self,
        manager: &LockManager,
        time: Duration,
        result: impl Fn(u32) -> Result<T, Failed> + Send + Sync + 'static,
    ) -> JoinHandle<Result<Result<T, Failed>, Error>>
    where
        T: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
    {
        let (runs, manager) = (self.clone(), manager.clone());
        let options = LockOptions::new().ttl(9 * SECOND).wait(600 * SECOND);
        tokio::spawn(async move {
            let body = async |_: &lockattr::Lease| {
                let run = runs.0.fetch_add(1, Ordering::Relaxed) + 1;
                sleep(time).await;
                result(run)
            };
            manager.with_shared_result("price:42", options, body).await
        })
    }
}

fn fleet(locks: &TestLocks, processes: usize) -> Vec<LockManager> {
    (0..processes).map(|_| locks.another_process()).collect()
}

/// Red without: the local results, the note, or its age.
#[tokio::test(start_paused = true)]
async fn a_crowd_in_many_processes_runs_the_body_once_and_all_get_its_value() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 10);
    for flight in 1..=3 {
        let calls: Vec<_> = (0..20)
            .flat_map(|_| managers.iter().map(|m| runs.call(m, SECOND, Ok)).collect::<Vec<_>>())
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), Ok(flight));
        }
        assert_eq!(runs.count(), flight);
    }
    sleep(60 * SECOND).await;
    locks.assert_nothing_left().await;
}

/// A value is never older than the call that gets it.
///
/// Red without: the comparison with `began`, or with the age that the store tells.
#[tokio::test(start_paused = true)]
async fn callers_that_come_after_the_body_ended_run_it_anew() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 2);
    let first = runs.call(&managers[0], SECOND, Ok);
    locks.until_held("price:42").await;
    let waiting = [runs.call(&managers[0], SECOND, Ok), runs.call(&managers[1], SECOND, Ok)];
    locks.until_waiting("price:42", 2).await;
    assert_eq!(first.await.unwrap().unwrap(), Ok(1));
    // At the same moment, before those that waited have been served.
    let late = [runs.call(&managers[0], SECOND, Ok), runs.call(&managers[1], SECOND, Ok)];
    for call in waiting {
        assert_eq!(call.await.unwrap().unwrap(), Ok(1));
    }
    for call in late {
        assert_eq!(call.await.unwrap().unwrap(), Ok(2));
    }
    assert_eq!(runs.call(&managers[0], SECOND, Ok).await.unwrap().unwrap(), Ok(3));
}

/// Red without: `ok` in `run`, or a note that outlives the next flight.
#[tokio::test(start_paused = true)]
async fn an_error_is_not_shared_and_the_next_caller_runs_the_body() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 2);
    let fails_first = |run| if run == 1 { Err(Failed) } else { Ok(run) };
    let first = runs.call(&managers[0], SECOND, fails_first);
    locks.until_held("price:42").await;
    let waiting = [
        runs.call(&managers[0], SECOND, fails_first),
        runs.call(&managers[1], SECOND, fails_first),
        runs.call(&managers[1], SECOND, fails_first),
    ];
    locks.until_waiting("price:42", 3).await;
    assert_eq!(first.await.unwrap().unwrap(), Err(Failed));
    for call in waiting {
        assert_eq!(call.await.unwrap().unwrap(), Ok(2));
    }
    assert_eq!(runs.count(), 2);
}

/// Red without: the limit, its event, or the run of the body without a result.
#[tokio::test(start_paused = true)]
async fn a_value_that_is_too_long_is_not_shared() {
    let events = capture_events();
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 2);
    // With its tag and its length it is one byte too long.
    for (length, expected) in [(64 * 1024 - 7, 1), (64 * 1024 - 6, 3)] {
        runs.0.store(0, Ordering::Relaxed);
        let long = move |_| Ok("x".repeat(length));
        let calls = [&managers[0], &managers[0], &managers[1]].map(|m| runs.call(m, SECOND, long));
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().unwrap().len(), length);
        }
        assert_eq!(runs.count(), expected, "{length}");
    }
    assert_eq!(events.count("longer than 64 KiB"), 1);
}

/// Red without: a note whose name may be longer than a key.
#[tokio::test(start_paused = true)]
async fn the_longest_key_shares_a_result_too() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let key = "k".repeat(1024);
    let call = async |manager: LockManager| {
        let body = async |_: &lockattr::Lease| {
            sleep(SECOND).await;
            Ok::<_, Failed>(runs.0.fetch_add(1, Ordering::Relaxed) + 1)
        };
        manager.with_shared_result(&key, LockOptions::new(), body).await.unwrap()
    };
    let calls = tokio::join!(call(locks.another_process()), call(locks.another_process()));
    assert_eq!(calls, (Ok(1), Ok(1)));
}

/// Every character comes through the label of a lock.
#[tokio::test(start_paused = true)]
async fn a_value_is_the_same_in_another_process_whatever_it_says() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 2);
    let all: String = (0..0x3000).filter_map(char::from_u32).collect();
    let value =
        (all.clone(), vec![Some(-1.5_f64), None], "a=b %20 / result=1/x/y done=1".to_owned());
    let gives = {
        let value = value.clone();
        move |_| Ok(value.clone())
    };
    let calls = [&managers[0], &managers[1]].map(|m| runs.call(m, SECOND, gives.clone()));
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().unwrap(), value);
    }
    assert_eq!(runs.count(), 1);
}

/// Red without: the function or the type in the note.
#[tokio::test(start_paused = true)]
async fn a_result_of_another_type_or_function_is_not_taken() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 2);
    let first = runs.call(&managers[0], SECOND, Ok);
    locks.until_held("price:42").await;
    let others = [
        runs.call(&managers[0], SECOND, |run| Ok(u64::from(run))),
        runs.call(&managers[1], SECOND, |run| Ok(u64::from(run))),
    ];
    locks.until_waiting("price:42", 2).await;
    let another = managers[1].with_shared_result(
        "price:42",
        LockOptions::new().wait(600 * SECOND).function("another"),
        async |_| Ok::<_, Failed>(runs.0.fetch_add(1, Ordering::Relaxed) + 1),
    );
    assert!(another.await.unwrap().unwrap() > 1);
    assert_eq!(first.await.unwrap().unwrap(), Ok(1));
    for call in others {
        assert!(call.await.unwrap().unwrap().unwrap() > 1);
    }
}

/// Red without: the next caller's own run.
#[tokio::test(start_paused = true)]
async fn the_next_runs_the_body_if_the_first_gave_up_or_lost_its_lock() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 2);
    let first = runs.call(&managers[0], SECOND, Ok);
    locks.until_held("price:42").await;
    let second = runs.call(&managers[1], 5 * SECOND, Ok);
    locks.until_waiting("price:42", 1).await;
    first.abort();
    locks.until_waiting("price:42", 0).await;
    while runs.count() < 2 {
        sleep(SECOND / 100).await;
    }
    let third = runs.call(&managers[0], SECOND, Ok);
    locks.until_waiting("price:42", 1).await;
    locks.expire("price:42");
    assert!(matches!(second.await.unwrap(), Err(Error::Lost { .. })));
    assert_eq!(third.await.unwrap().unwrap(), Ok(3));
}

/// Red without: the flag `waited`, or with a read for every call.
#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_wait_sends_one_request_more_than_without() {
    let locks = TestLocks::new();
    let manager = locks.manager();
    let plain = manager.with_lock("a", LockOptions::new(), async |_| ());
    plain.await.unwrap();
    let without = locks.requests();
    let shared = manager.with_shared_result("b", LockOptions::new(), async |_| Ok::<_, Failed>(1));
    shared.await.unwrap().unwrap();
    assert_eq!(locks.requests() - without, without + 1);
}

/// Red without: `check_sharing`.
#[tokio::test(start_paused = true)]
async fn locks_that_several_hold_are_refused() {
    let locks = TestLocks::new();
    for options in [LockOptions::new().mode(Mode::Shared), LockOptions::new().permits(2)] {
        let got = locks.manager().with_shared_result("a", options, async |_| Ok::<_, Failed>(1));
        assert!(matches!(got.await, Err(Error::InvalidOptions(_))));
    }
}

#[distributed_lock(key = "price:<id>", share_result = true)]
async fn price(id: u32, runs: Runs) -> Result<Option<String>, Error> {
    let run = runs.0.fetch_add(1, Ordering::Relaxed) + 1;
    sleep(SECOND).await;
    Ok(Some(format!("{id} in run {run}")))
}

#[tokio::test(start_paused = true)]
async fn an_annotated_function_shares_its_result() {
    let (locks, runs) = (TestLocks::new(), Runs::default());
    let managers = fleet(&locks, 3);
    let calls: Vec<_> = managers
        .iter()
        .flat_map(|manager| {
            (0..3).map(|_| manager.scope(price(42, runs.clone()))).collect::<Vec<_>>()
        })
        .map(tokio::spawn)
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().as_deref(), Some("42 in run 1"));
    }
    let other = locks.scope(price(43, runs.clone())).await;
    assert_eq!(other.unwrap().as_deref(), Some("43 in run 2"));
}
