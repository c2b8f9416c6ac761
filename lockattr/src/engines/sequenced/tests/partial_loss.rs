//! Claims for several keys, some of whose entries were removed by hand.

use super::*;

/// Makes a claim wait for both keys while another holds the first, then removes its entry in the
/// queue of the second. Returns the notification that it gets.
async fn loses_a_part(here: &Fixture, waiter: &Arc<Claim>) -> Notification {
    let holder = here.claim(&["a"]);
    here.takes(&holder).await;
    here.waits(waiter).await;
    here.servers.remove("b", waiter.token());
    here.news(waiter, async {
        assert_eq!(here.releases(&holder).await.unwrap(), ReleaseOutcome::Released);
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_lost_a_part_gives_back_the_rest() {
    let here = Fixture::new();
    let waiter = here.claim(&["a", "b"]);
    let told = loses_a_part(&here, &waiter).await;
    assert!(matches!(told, Notification::AskAgain(_)), "{told:?}");
    assert_eq!(here.releases(&waiter).await.unwrap(), ReleaseOutcome::NotHeld);
    here.nothing_is_left();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_lost_a_part_does_not_wait_for_itself() {
    let here = Fixture::new();
    let waiter = here.claim(&["a", "b"]);
    loses_a_part(&here, &waiter).await;
    here.takes(&waiter).await;
    assert_eq!([here.servers.queue("a"), here.servers.queue("b")], [[waiter.token()]; 2]);
    assert_eq!(here.releases(&waiter).await.unwrap(), ReleaseOutcome::Released);
    here.nothing_is_left();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_manager_is_gone_leaves_nothing_of_what_is_left() {
    let mut here = Fixture::new();
    let (holder, waiter) = (here.claim(&["a"]), here.claim(&["a", "b"]));
    here.takes(&holder).await;
    here.waits(&waiter).await;
    here.subscriber = Arc::new(Subscriber::new(|_| {}));
    here.servers.remove("b", waiter.token());
    assert_eq!(here.releases(&holder).await.unwrap(), ReleaseOutcome::Released);
    sleep(SHORTLY).await;
    here.nothing_is_left();
}

#[tokio::test(start_paused = true)]
async fn hold_at_least_keeps_no_part_of_what_was_taken() {
    let here = Fixture::new();
    let claim = here.claim(&["a", "b"]);
    here.takes(&claim).await;
    here.servers.remove("b", claim.token());
    let stays = [ReleaseRequest::new(claim.clone()).after(TTL * 2)];
    let answers = here.store.release(&stays).await;
    assert!(matches!(answers[..], [Ok(ReleaseOutcome::NotHeld)]), "{answers:?}");
    sleep(SHORTLY).await;
    here.nothing_is_left();
}
