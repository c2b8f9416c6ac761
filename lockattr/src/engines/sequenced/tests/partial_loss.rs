//! Claims for several keys, some of whose entries were removed by hand.

use super::*;

/// Makes a claim wait for both keys while another holds the first, then removes its entry in the
/// queue of the second. Returns the notification that it gets.
async fn lose_one_entry(here: &Fixture, waiter: &Arc<Claim>) -> Notification {
    let holder = here.claim(&["a"]);
    here.expect_acquired(&holder).await;
    here.expect_queued(waiter).await;
    here.servers.remove("b", waiter.token());
    here.notification_during(waiter, async {
        assert_eq!(here.release(&holder).await.unwrap(), ReleaseOutcome::Released);
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_lost_a_part_gives_back_the_rest() {
    let here = Fixture::new();
    let waiter = here.claim(&["a", "b"]);
    let notification = lose_one_entry(&here, &waiter).await;
    assert!(matches!(notification, Notification::AskAgain(_)), "{notification:?}");
    assert_eq!(here.release(&waiter).await.unwrap(), ReleaseOutcome::NotHeld);
    here.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_lost_a_part_does_not_wait_for_itself() {
    let here = Fixture::new();
    let waiter = here.claim(&["a", "b"]);
    lose_one_entry(&here, &waiter).await;
    here.expect_acquired(&waiter).await;
    assert_eq!([here.servers.queue("a"), here.servers.queue("b")], [[waiter.token()]; 2]);
    assert_eq!(here.release(&waiter).await.unwrap(), ReleaseOutcome::Released);
    here.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_manager_is_gone_leaves_nothing_of_what_is_left() {
    let mut here = Fixture::new();
    let (holder, waiter) = (here.claim(&["a"]), here.claim(&["a", "b"]));
    here.expect_acquired(&holder).await;
    here.expect_queued(&waiter).await;
    here.subscriber = Arc::new(Subscriber::new(|_| {}));
    here.servers.remove("b", waiter.token());
    assert_eq!(here.release(&holder).await.unwrap(), ReleaseOutcome::Released);
    sleep(SHORTLY).await;
    here.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn hold_at_least_keeps_no_part_of_what_was_taken() {
    let here = Fixture::new();
    let claim = here.claim(&["a", "b"]);
    here.expect_acquired(&claim).await;
    here.servers.remove("b", claim.token());
    let stays = [ReleaseRequest::new(claim.clone()).after(TTL * 2)];
    let answers = here.store.release(&stays).await;
    assert!(matches!(answers[..], [Ok(ReleaseOutcome::NotHeld)]), "{answers:?}");
    sleep(SHORTLY).await;
    here.assert_nothing_left();
}
