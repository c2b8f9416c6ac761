//! One walk over everything that a manager asks of a database, for what a missing right or a setting
//! of the server may refuse.

use std::convert::Infallible;
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, Mode};
use lockattr_tests::{eventually, in_time, with_query};

/// A lease that does not end.
const LONG: Duration = Duration::from_secs(600);

/// A key that a server misreads if its session takes literals or characters in another way.
const KEY: &str = "a\\'ä💰";

/// Locks in both forms: with leases at `url`, where `queued` says whether one claim waits, and with
/// connections at `session_url`.
pub(crate) async fn lock_in_every_way(
    url: &str,
    session_url: &str,
    queued: impl AsyncFn() -> bool,
) {
    for (form, url) in [("lease", url), ("session", session_url)] {
        let url = with_query(url, &format!("lock={form}"));
        let connected = async || match LockManager::connect(&url).await {
            Ok(manager) => manager,
            Err(error) => panic!("{form}: {error}"),
        };
        let (here, there) = (connected().await, connected().await);
        exclusively(&here, &there, form, &queued).await;
        if form == "lease" {
            with_others(&here, &there).await;
            under_other_names(&here, &there).await;
        }
    }
}

/// A lock that another process sees, waits for and gets.
async fn exclusively(
    here: &LockManager,
    there: &LockManager,
    form: &str,
    queued: impl AsyncFn() -> bool,
) {
    let held = here.acquire(KEY, LockOptions::new()).await.unwrap();
    let second = there.try_acquire(KEY, LockOptions::new()).await;
    assert!(second.unwrap().is_none(), "{form}: two holders");
    assert!(there.holder(KEY).await.unwrap().is_some(), "{form}");
    let waiting = there.clone();
    let waits = tokio::spawn(async move { waiting.acquire(KEY, LockOptions::new()).await });
    if form == "lease" {
        eventually("one is queued", queued).await;
    }
    held.extend(LONG).await.unwrap();
    let token = held.fencing_token();
    held.release().await.unwrap();
    let next = in_time(waits).await.unwrap().unwrap();
    assert!(next.fencing_token() > token, "{form}");
    next.release().await.unwrap();
}

/// Shared locks, permits, several keys, and what operators ask for.
async fn with_others(here: &LockManager, there: &LockManager) {
    let permits = LockOptions::new().permits(2);
    for options in [LockOptions::new().mode(Mode::Shared), permits] {
        let first = here.acquire(KEY, options.clone()).await.unwrap();
        let second = there.acquire(KEY, options).await.unwrap();
        first.release().await.unwrap();
        second.release().await.unwrap();
    }
    let held = here.acquire_all(["a", "b"], LockOptions::new()).await.unwrap();
    assert!(there.try_acquire("b", LockOptions::new()).await.unwrap().is_none());
    assert_eq!(there.held_locks().await.unwrap().len(), 2);
    assert!(lockattr_tests::force_release(there, "a").await.unwrap());
    drop(held);
}

/// Marks, leaders and shared results, which are locks too.
async fn under_other_names(here: &LockManager, there: &LockManager) {
    let held = here.acquire("done", LockOptions::new()).await.unwrap();
    held.release_done(LONG).await.unwrap();
    let holder = there.holder("done").await.unwrap().expect("a done key is held");
    assert!(holder.done, "{holder:?}");
    assert!(lockattr_tests::force_release(there, "done").await.unwrap());
    let led = here.lead("lead", LockOptions::new(), async |term| {
        // Written a moment after the term has begun.
        let noted = async || {
            let leader = there.leader("lead").await.unwrap().expect("it leads");
            leader.term == Some(term.number())
        };
        eventually("its term is noted", noted).await;
    });
    led.await.unwrap();
    let body = async |_: &lockattr::Lease| Ok::<_, Infallible>(17);
    match here.with_shared_result("price", LockOptions::new(), body).await {
        // MySQL keeps no results.
        Err(Error::InvalidOptions(_)) => {}
        shared => assert_eq!(shared.unwrap(), Ok(17)),
    }
}
