//! Inspecting waiters, acquisitions, and what is left.

use std::time::Duration;

use lockattr::testing::{Outcome, TestLocks};
use lockattr::{Error, LockOptions, distributed_lock};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio::{join, pin};

use super::{SECOND, deduct, outcomes};

#[distributed_lock(key = "order:<id>")]
async fn ship(id: u64, locks: &TestLocks) -> Result<(), Error> {
    locks.note("picked");
    pack(id, locks).await
}

#[distributed_lock(key = "order:<id>")]
async fn pack(id: u64, locks: &TestLocks) -> Result<(), Error> {
    sleep(SECOND).await;
    locks.note("packed");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_acquisition_is_recorded_with_its_outcome() {
    let locks = TestLocks::new();
    locks.hold("order:7").release_after(2 * SECOND);
    locks.scope(ship(7, &locks)).await.unwrap();

    let [outer, nested] = &locks.acquisitions()[..] else { panic!("{locks:#?}") };
    assert_eq!((&*outer.key, outer.template), ("order:7", Some("order:<id>")));
    assert_eq!(outer.function, Some(concat!(module_path!(), "::ship")));
    assert_eq!(nested.function, Some(concat!(module_path!(), "::pack")));
    assert_eq!((outer.nested, nested.nested), (false, true));
    assert_eq!((outer.waited, outer.held), (2 * SECOND, Some(SECOND)));
    assert_eq!((nested.waited, nested.held), (Duration::ZERO, Some(SECOND)));
    assert!(outer.fencing_token.is_some() && outer.fencing_token == nested.fencing_token);
    assert_eq!((outer.outcome, nested.outcome), (Outcome::Released, Outcome::Released));
    assert_eq!(
        locks.timeline(),
        [
            "order:7 waiting",
            "order:7 held",
            "picked",
            "order:7 held again",
            "packed",
            "order:7 released again",
            "order:7 released",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn waiters_are_listed_in_order_whichever_queue_they_are_in() {
    let locks = TestLocks::new();
    let other = locks.hold("stock");
    let node = locks.another_process();
    let mut work = JoinSet::new();
    for (place, function) in ["a", "b", "c"].into_iter().enumerate() {
        // The first two wait in the queue of one process, of which the store sees only one.
        let manager = if place == 2 { node.clone() } else { locks.manager().clone() };
        work.spawn(async move {
            manager.acquire("stock", LockOptions::new().function(function)).await?.release().await
        });
        locks.until_waiting("stock", place + 1).await;
    }
    let waiting: Vec<_> = locks
        .waiting("stock")
        .into_iter()
        .map(|waiting| (waiting.function.unwrap(), waiting.service))
        .collect();
    let expected = [("a", "test"), ("b", "test"), ("c", "process-2")];
    assert_eq!(waiting, expected.map(|(function, service)| (function, service.to_owned())));
    assert!(locks.waiting("other").is_empty());

    other.release();
    while let Some(done) = work.join_next().await {
        done.unwrap().unwrap();
    }
    assert!(locks.waiting("stock").is_empty());
    assert_eq!(outcomes(&locks), ["released"; 3]);
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_nested_call_that_waits_for_its_turn_is_listed_as_waiting() {
    let locks = TestLocks::new();
    let guard = locks.manager().acquire("stock", LockOptions::new()).await.unwrap();
    let enter = || locks.manager().acquire("stock", LockOptions::new());
    let both = guard.scope(async {
        let first = enter().await.unwrap();
        let let_in = async {
            locks.until_waiting("stock", 1).await;
            assert!(locks.waiting("stock")[0].nested);
            drop(first);
        };
        join!(guard.scope(enter()), let_in).0
    });
    assert!(both.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_dropped_is_recorded_as_such() {
    let locks = TestLocks::new();
    let other = locks.hold("product:42");
    assert!(timeout(SECOND, locks.scope(deduct(42))).await.is_err());
    other.release();
    assert!(timeout(SECOND, locks.scope(deduct(42))).await.is_err());
    locks.assert_nothing_left().await;
    assert_eq!(outcomes(&locks), ["cancelled", "released"]);
    let [waited, held] = &locks.acquisitions()[..] else { panic!("{locks:#?}") };
    assert_eq!((waited.waited, waited.held), (SECOND, None));
    assert_eq!((held.waited, held.held), (Duration::ZERO, Some(SECOND)));
}

#[tokio::test(start_paused = true)]
async fn a_loss_that_only_the_release_detects_is_recorded() {
    let locks = TestLocks::new();
    let guard = locks.manager().acquire("stock", LockOptions::new()).await.unwrap();
    let thief = locks.steal("stock");
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    assert_eq!(outcomes(&locks), ["lost: the store no longer has this process as its holder"]);
    drop(thief);
    locks.assert_nothing_left().await;
}

/// Red without: recording all keys of an acquisition.
#[tokio::test(start_paused = true)]
async fn an_acquisition_of_several_keys_is_one_and_waits_for_each() {
    let locks = TestLocks::new();
    let other = locks.hold("account:7");
    let both = locks.manager().acquire_all(["account:7", "account:3"], LockOptions::new());
    let let_go = async {
        locks.until_waiting("account:3", 1).await;
        locks.until_waiting("account:7", 1).await;
        other.release();
    };
    let (guard, ()) = join!(both, let_go);
    assert_eq!(locks.acquisitions()[0].key, "account:3, account:7");
    locks.expire("account:7");
    assert!(guard.unwrap().ensure_held().is_err(), "one lease for both");
    locks.assert_free("account:3");
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn locks_that_are_left_are_named() {
    let locks = TestLocks::new();
    let other = locks.hold("report");
    let guard =
        locks.manager().acquire("stock", LockOptions::new().template("stock")).await.unwrap();
    let waits = locks.another_process();
    let waits = waits.acquire("stock", LockOptions::new().function("sell"));
    pin!(waits);
    tokio::select! {
        biased;
        _ = &mut waits => panic!("it is held"),
        () = locks.until_waiting("stock", 1) => {}
    }
    let said = tokio::spawn({
        let locks = locks.clone();
        async move { locks.assert_nothing_left().await }
    });
    let said = said.await.unwrap_err().into_panic();
    let said = said.downcast_ref::<String>().unwrap();
    for left in [
        "`lock:report` is held by another on elsewhere (process 4711)",
        "`lock:stock` is held by test on ",
        "`stock` (stock) on test: held",
        "`stock` by sell on process-2: waiting",
    ] {
        assert!(said.contains(left), "`{left}` is not in {said}");
    }
    other.release();
    drop(guard);
    waits.await.unwrap().release().await.unwrap();
    locks.assert_nothing_left().await;
}

/// Red without: the limit in `until`.
#[tokio::test(start_paused = true)]
async fn waiting_for_an_event_that_never_happens_fails_instead_of_hanging() {
    let locks = TestLocks::new();
    let _other = locks.hold("stock");
    let said = |wait: tokio::task::JoinError| wait.into_panic().downcast::<String>().unwrap();
    let (looks, frees) = (locks.clone(), locks.clone());
    let nobody = tokio::spawn(async move { looks.until_waiting("stock", 1).await }).await;
    let nobody = said(nobody.unwrap_err());
    assert!(nobody.starts_with("after 60s 0 wait for `stock`, not 1"), "{nobody}");
    let taken =
        said(tokio::spawn(async move { frees.until_free("stock").await }).await.unwrap_err());
    assert!(taken.starts_with("after 60s `stock` is not free"), "{taken}");
}
