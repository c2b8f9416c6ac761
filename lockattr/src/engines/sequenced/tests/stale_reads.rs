//! Reads of queues that are older than a grant.

use super::*;

/// Asks again while the claim is granted the lock: the reply comes from queues that were read
/// before.
async fn acquire_during_grant(waiting: Waiting) {
    let here = Fixture::new();
    let (holder, waiter) = (here.claim(&["a"]), here.claim(&["a"]));
    here.expect_acquired(&holder).await;
    here.expect_queued(&waiter).await;
    let confirmed = here.servers.reply_late("confirm");
    let (store, request) =
        (here.store.clone(), AcquireRequest::new(waiter.clone(), TTL).waiting(waiting));
    let acquiring = tokio::spawn(async move { store.acquire(&request).await });
    sleep(SHORTLY).await;
    let notification = here.notification_during(&waiter, async {
        assert_eq!(here.release(&holder).await.unwrap(), ReleaseOutcome::Released);
    });
    let notification = notification.await;
    assert!(matches!(notification, Notification::Granted(_)), "{notification:?}");
    confirmed.notify_one();
    let outcome = acquiring.await.unwrap();
    assert!(matches!(outcome, Ok(AcquireOutcome::Acquired { .. })), "{outcome:?}");
    assert_eq!(here.renew(&waiter).await.unwrap(), RenewOutcome::Renewed);
    assert_eq!(here.servers.queue("a"), [waiter.token()]);
    assert_eq!(here.release(&waiter).await.unwrap(), ReleaseOutcome::Released);
    here.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn an_older_look_takes_no_grant_back_from_a_waiter() {
    acquire_during_grant(Waiting::Queued).await;
}

#[tokio::test(start_paused = true)]
async fn an_older_look_takes_no_grant_back_from_who_asks_a_last_time() {
    acquire_during_grant(Waiting::Not).await;
}
