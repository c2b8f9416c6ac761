//! The names of entries, which are used again, and what else may have such a name.

use std::time::Duration;

use lockattr::store::{AcquireOutcome, EtcdStore, ReleaseOutcome};
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, Etcd, eventually, for_store, in_time, with_query};

use super::{acquire, claim, is_acquired, manager, release};

const QUICK: &str = "response_timeout=300ms&connect_timeout=300ms&heartbeat=60s";

/// etcd keeps each name that ever was, and reads all of them with a queue.
///
/// Red without: the number that `EntryNames` finds free again.
#[tokio::test]
async fn a_lock_has_few_names_however_often_it_is_acquired() {
    let etcd = Etcd::shared().await;
    let managers = [manager(&etcd.url()).await, manager(&etcd.url()).await];
    let (mut alone, mut shared) = (Vec::new(), Vec::new());
    let free = LockOptions::new();
    for nth in 0..10 {
        let guard = managers[nth % 2].acquire("often", free.clone()).await.unwrap();
        alone.extend(etcd.keys("lock:often/").await);
        guard.release().await.unwrap();
        let permits = LockOptions::new().permits(3);
        let guards = [(); 3].map(|()| managers[0].acquire("permits", permits.clone()));
        let guards = futures_util::future::try_join_all(guards).await.unwrap();
        shared.extend(etcd.keys("lock:permits/").await);
        futures_util::future::try_join_all(guards.into_iter().map(lockattr::LockGuard::release))
            .await
            .unwrap();
    }
    for (names, count) in [(&mut alone, 2), (&mut shared, 3)] {
        let made = names.len();
        names.sort_unstable();
        names.dedup();
        assert!(made >= 10 && names.len() == count, "{names:?}");
    }
    assert_eq!(etcd.keys("lock:often/").await, [""; 0]);
    assert_eq!(etcd.keys("lock:permits/").await, [""; 0]);
}

/// An entry of another claim may have the name, for example because it was removed without a reply
/// and made again; and an earlier version has other names.
///
/// Red without: the comparison of the text, or `is_taken`.
#[tokio::test]
async fn an_entry_that_should_not_be_there_is_waited_for() {
    let etcd = Etcd::shared().await;
    let store = EtcdStore::open(&for_store(&etcd.url())).unwrap();
    let (first, second) = (claim("strange"), claim("strange"));
    assert!(is_acquired(&store, &first).await);
    let name = etcd.keys("etcd:strange/").await.remove(0);
    release(&store, &first).await.unwrap();
    let earlier = "etcd:strange/x-0123456789abcdef0123456789abcdef-7b";
    for other in [&name, earlier] {
        etcd.ctl(&["put", other, "fedcba9876543210fedcba9876543210 service=other lease=9000"])
            .await;
        let outcome = acquire(&store, &second).await.unwrap();
        let AcquireOutcome::Held { holder: Some(holder), .. } = outcome else {
            panic!("acquired beside {other}: {outcome:?}");
        };
        assert_eq!(holder.service.as_deref(), Some("other"));
        assert_eq!(etcd.keys("etcd:strange/").await, [other]);
        etcd.ctl(&["del", other]).await;
        assert!(is_acquired(&store, &second).await);
        assert_eq!(release(&store, &second).await, Ok(ReleaseOutcome::Released));
        assert_eq!(etcd.keys("etcd:strange/").await, [""; 0]);
    }
}

/// A member is stopped with a release, another one gets it again, the next claim has the same name,
/// and then the first member continues.
///
/// Red without: the comparison in `requests::leave`.
#[tokio::test]
async fn a_removal_that_arrives_late_removes_no_later_entry() {
    let etcd = Etcd::start().await;
    let (mut n, mut late) = (0, 0);
    while late < 5 {
        n += 1;
        let leader = etcd.leader().await;
        // Both are followers: a request that a leader has not read before it is deposed is lost.
        let (asked, other) = ((leader + 1) % 3, (leader + 2) % 3);
        let addrs = [asked, other].map(|nth| etcd.addrs()[nth].clone());
        let store = EtcdStore::open(&for_store(&with_query(&etcd.url_at(&addrs), QUICK))).unwrap();
        let (first, second) = (claim(&format!("late{n}")), claim(&format!("late{n}")));
        etcd.stop_signal(other);
        eventually("the running member answers", async || is_acquired(&store, &first).await).await;
        let made = etcd.keys("etcd:late").await;
        etcd.continue_signal(other);
        etcd.stop_signal(asked);
        // The other member executes it, if the store lost its connection before.
        late += usize::from(release(&store, &first).await.is_err());
        // `NotHeld`, if the answer to an earlier try came too late.
        let gone = async || release(&store, &first).await.is_ok();
        eventually("another member is sent the request", gone).await;
        eventually("acquired", async || is_acquired(&store, &second).await).await;
        assert_eq!(etcd.keys("etcd:late").await, made, "the same name");
        etcd.continue_signal(asked);
        // Nothing shows that the member has read the request. If it has not, this proves nothing, so it is repeated.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(etcd.keys("etcd:late").await, made, "it was removed");
        eventually("released", async || release(&store, &second).await.is_ok()).await;
    }
}

/// Each session has names of its own, so a claim that enters again after its session is gone
/// neither finds nor removes an entry of another.
#[tokio::test]
async fn a_new_session_has_new_names() {
    let etcd = Etcd::shared().await;
    let here: LockManager = manager(&etcd.url()).await;
    let held = here.acquire("again", LockOptions::new()).await.unwrap();
    let first = etcd.keys("lock:again/").await;
    let lease = etcd.lease_of("lock:again/").await;
    etcd.ctl(&["lease", "revoke", &lease]).await;
    in_time(held.lost()).await;
    drop(held);
    let again = here.acquire("again", LockOptions::new()).await.unwrap();
    let second = etcd.keys("lock:again/").await;
    assert!(second.len() == 1 && second != first, "{first:?} {second:?}");
    again.release().await.unwrap();
    assert_eq!(etcd.keys("lock:again/").await, [""; 0]);
}
