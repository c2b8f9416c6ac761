//! Claims that are being removed.

use super::*;
use crate::store::MAX_RECHECK;

/// A process is paused until a request without a reply must be undone, and then asks again.
#[tokio::test(start_paused = true)]
async fn what_is_being_removed_is_not_taken_over() {
    let here = Fixture::new();
    let (lost, next) = (here.claim(&["a"]), here.claim(&["a"]));
    here.servers.next("enter", Fate::Lost);
    here.asks(&lost).await.unwrap_err();
    here.waits(&next).await;
    let removal = here.servers.late("leave");
    sleep(TTL + MAX_RECHECK + SHORTLY).await;
    let error = here.asks(&lost).await.expect_err("it is on its way out");
    assert!(!error.is_not_sent(), "what is there is not to be forgotten");
    let told = here.news(&next, async { removal.notify_one() }).await;
    assert!(matches!(told, Notification::Granted(_)), "{told:?}");
    here.waits(&lost).await;
    assert_eq!(here.servers.queue("a"), [next.token(), lost.token()]);
    assert_eq!(here.releases(&next).await.unwrap(), ReleaseOutcome::Released);
    sleep(SHORTLY).await;
    assert_eq!(here.releases(&lost).await.unwrap(), ReleaseOutcome::Released);
    here.nothing_is_left();
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_a_removal_forgets_no_later_place() {
    let here = Fixture::new();
    let claim = here.claim(&["a"]);
    here.takes(&claim).await;
    let (store, answer) = (here.store.clone(), here.servers.answered_late("leave"));
    let releasing = [ReleaseRequest::new(claim.clone())];
    let released = tokio::spawn(async move { store.release(&releasing).await });
    sleep(SHORTLY).await;
    here.servers.end_session();
    sleep(SHORTLY).await;
    here.takes(&claim).await;
    answer.notify_one();
    released.await.unwrap().remove(0).unwrap();
    assert_eq!(here.renews(&claim).await.unwrap(), RenewOutcome::Renewed);
    assert_eq!(here.releases(&claim).await.unwrap(), ReleaseOutcome::Released);
    here.nothing_is_left();
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_release_leaves_is_removed_in_time() {
    let here = Fixture::new();
    let (holder, waiter) = (here.claim(&["a"]), here.claim(&["a"]));
    here.asks_for(&holder, TTL * 100, Waiting::Not).await.unwrap();
    here.waits(&waiter).await;
    // Until the timer knows of no earlier end.
    sleep(SHORTLY).await;
    here.servers.next("leave", Fate::NotSent);
    here.releases(&waiter).await.unwrap_err();
    sleep(TTL + SHORTLY).await;
    assert_eq!(here.servers.queue("a"), [holder.token()]);
    assert_eq!(here.releases(&holder).await.unwrap(), ReleaseOutcome::Released);
    here.nothing_is_left();
}

#[tokio::test(start_paused = true)]
async fn a_refused_claim_that_could_not_leave_is_not_forgotten() {
    let here = Fixture::new();
    let (holder, refused) = (here.claim(&["a"]), here.claim(&["a"]));
    here.takes(&holder).await;
    here.servers.next("leave", Fate::NotSent);
    let error = here.asks_for(&refused, TTL, Waiting::Not).await.unwrap_err();
    assert!(!error.is_not_sent(), "there is something to undo");
    // Whether or not the claim asks again.
    sleep(SHORTLY).await;
    assert_eq!(here.servers.queue("a"), [holder.token()]);
    assert_eq!(here.releases(&holder).await.unwrap(), ReleaseOutcome::Released);
    here.nothing_is_left();
}

/// The reply comes when the lease is over, and removing the entries that it made fails.
#[tokio::test(start_paused = true)]
async fn what_was_made_too_late_is_removed_until_it_is_gone() {
    let here = Fixture::new();
    let late = here.claim(&["a"]);
    let entered = here.servers.late("enter");
    let (store, asked) = (here.store.clone(), AcquireRequest::new(late.clone(), TTL));
    let asking = tokio::spawn(async move { store.acquire(&asked).await });
    sleep(TTL + MAX_RECHECK + SHORTLY).await;
    here.servers.next("leave", Fate::NotSent);
    entered.notify_one();
    asking.await.unwrap().unwrap_err();
    sleep(SHORTLY).await;
    here.nothing_is_left();
}
