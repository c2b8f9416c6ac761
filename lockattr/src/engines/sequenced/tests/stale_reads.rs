//! Reads of queues that are older than a grant.

use super::*;

/// Asks again while the claim is granted the lock: the reply comes from queues that were read
/// before.
async fn looks_and_is_granted(waiting: Waiting) {
    let here = Fixture::new();
    let (holder, waiter) = (here.claim(&["a"]), here.claim(&["a"]));
    here.takes(&holder).await;
    here.waits(&waiter).await;
    let confirmed = here.servers.answered_late("confirm");
    let (store, asked) =
        (here.store.clone(), AcquireRequest::new(waiter.clone(), TTL).waiting(waiting));
    let asking = tokio::spawn(async move { store.acquire(&asked).await });
    sleep(SHORTLY).await;
    let told = here.news(&waiter, async {
        assert_eq!(here.releases(&holder).await.unwrap(), ReleaseOutcome::Released);
    });
    let told = told.await;
    assert!(matches!(told, Notification::Granted(_)), "{told:?}");
    confirmed.notify_one();
    let answer = asking.await.unwrap();
    assert!(matches!(answer, Ok(AcquireOutcome::Acquired { .. })), "{answer:?}");
    assert_eq!(here.renews(&waiter).await.unwrap(), RenewOutcome::Renewed);
    assert_eq!(here.servers.queue("a"), [waiter.token()]);
    assert_eq!(here.releases(&waiter).await.unwrap(), ReleaseOutcome::Released);
    here.nothing_is_left();
}

#[tokio::test(start_paused = true)]
async fn an_older_look_takes_no_grant_back_from_a_waiter() {
    looks_and_is_granted(Waiting::Queued).await;
}

#[tokio::test(start_paused = true)]
async fn an_older_look_takes_no_grant_back_from_who_asks_a_last_time() {
    looks_and_is_granted(Waiting::Not).await;
}
