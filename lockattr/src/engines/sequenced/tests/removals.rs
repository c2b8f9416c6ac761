//! Claims that are being removed.

use super::*;
use crate::store::MAX_RECHECK;

/// A process is paused until a request without a reply must be undone, and then asks again.
#[tokio::test(start_paused = true)]
async fn what_is_being_removed_is_not_taken_over() {
    let here = Fixture::new();
    let (lost, next) = (here.claim(&["a"]), here.claim(&["a"]));
    here.servers.next("enter", Fate::Lost);
    here.acquire(&lost).await.unwrap_err();
    here.expect_queued(&next).await;
    let removal = here.servers.late("leave");
    sleep(TTL + MAX_RECHECK + SHORTLY).await;
    let error = here.acquire(&lost).await.expect_err("it is on its way out");
    assert!(!error.is_not_sent(), "what is there is not to be forgotten");
    let notification = here.notification_during(&next, async { removal.notify_one() }).await;
    assert!(matches!(notification, Notification::Granted(_)), "{notification:?}");
    here.expect_queued(&lost).await;
    assert_eq!(here.servers.queue("a"), [next.token(), lost.token()]);
    assert_eq!(here.release(&next).await.unwrap(), ReleaseOutcome::Released);
    sleep(SHORTLY).await;
    assert_eq!(here.release(&lost).await.unwrap(), ReleaseOutcome::Released);
    here.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_a_removal_forgets_no_later_place() {
    let here = Fixture::new();
    let claim = here.claim(&["a"]);
    here.expect_acquired(&claim).await;
    let (store, reply) = (here.store.clone(), here.servers.reply_late("leave"));
    let releasing = [ReleaseRequest::new(claim.clone())];
    let released = tokio::spawn(async move { store.release(&releasing).await });
    sleep(SHORTLY).await;
    here.servers.end_session();
    sleep(SHORTLY).await;
    here.expect_acquired(&claim).await;
    reply.notify_one();
    released.await.unwrap().remove(0).unwrap();
    assert_eq!(here.renew(&claim).await.unwrap(), RenewOutcome::Renewed);
    assert_eq!(here.release(&claim).await.unwrap(), ReleaseOutcome::Released);
    here.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_release_leaves_is_removed_in_time() {
    let here = Fixture::new();
    let (holder, waiter) = (here.claim(&["a"]), here.claim(&["a"]));
    here.acquire_with(&holder, TTL * 100, Waiting::Not).await.unwrap();
    here.expect_queued(&waiter).await;
    // Until the timer knows of no earlier end.
    sleep(SHORTLY).await;
    here.servers.next("leave", Fate::NotSent);
    here.release(&waiter).await.unwrap_err();
    sleep(TTL + SHORTLY).await;
    assert_eq!(here.servers.queue("a"), [holder.token()]);
    assert_eq!(here.release(&holder).await.unwrap(), ReleaseOutcome::Released);
    here.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn a_refused_claim_that_could_not_leave_is_not_forgotten() {
    let here = Fixture::new();
    let (holder, refused) = (here.claim(&["a"]), here.claim(&["a"]));
    here.expect_acquired(&holder).await;
    here.servers.next("leave", Fate::NotSent);
    let error = here.acquire_with(&refused, TTL, Waiting::Not).await.unwrap_err();
    assert!(!error.is_not_sent(), "there is something to undo");
    // Whether or not the claim asks again.
    sleep(SHORTLY).await;
    assert_eq!(here.servers.queue("a"), [holder.token()]);
    assert_eq!(here.release(&holder).await.unwrap(), ReleaseOutcome::Released);
    here.assert_nothing_left();
}

/// The reply comes when the lease is over, and removing the entries that it made fails.
#[tokio::test(start_paused = true)]
async fn what_was_made_too_late_is_removed_until_it_is_gone() {
    let here = Fixture::new();
    let late = here.claim(&["a"]);
    let entered = here.servers.late("enter");
    let (store, request) = (here.store.clone(), AcquireRequest::new(late.clone(), TTL));
    let acquiring = tokio::spawn(async move { store.acquire(&request).await });
    sleep(TTL + MAX_RECHECK + SHORTLY).await;
    here.servers.next("leave", Fate::NotSent);
    entered.notify_one();
    acquiring.await.unwrap().unwrap_err();
    sleep(SHORTLY).await;
    here.assert_nothing_left();
}
