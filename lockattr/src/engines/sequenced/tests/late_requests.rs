//! Requests to acquire that take effect, or are answered, after a longer renewal.

use super::*;

/// Longer than [`TTL`], as after `extend`.
const EXTENDED: Duration = Duration::from_secs(60);

/// After the lease of a request that came too late, and before the end of the longer one.
const BETWEEN: Duration = Duration::from_secs(40);

/// The claim's lease is extended, and a request of its own that was sent before is answered then.
async fn extended_before_the_answer(delay: impl Fn(&Fixture) -> Arc<tokio::sync::Notify>) {
    let here = Fixture::new();
    let claim = here.claim(&["a"]);
    here.expect_acquired(&claim).await;
    let delayed = delay(&here);
    let (store, request) = (here.store.clone(), AcquireRequest::new(claim.clone(), TTL));
    let late = tokio::spawn(async move { store.acquire(&request).await });
    sleep(SHORTLY).await;
    let renewal = RenewRequest::new(claim.clone(), EXTENDED);
    let renewed = here.store.renew(&[renewal]).await.remove(0);
    assert_eq!(renewed.unwrap(), RenewOutcome::Renewed);
    delayed.notify_one();
    let outcome = late.await.unwrap();
    assert!(matches!(outcome, Ok(AcquireOutcome::Acquired { .. })), "{outcome:?}");
    sleep(BETWEEN).await;
    assert_eq!(here.servers.queue("a"), [claim.token()], "the lease was shortened");
    assert_eq!(here.release(&claim).await.unwrap(), ReleaseOutcome::Released);
    here.assert_nothing_left();
}

/// Red without: the comparison in `Claims::extend_to`.
#[tokio::test(start_paused = true)]
async fn a_repeated_request_that_is_answered_late_shortens_no_lease() {
    extended_before_the_answer(|here| here.servers.reply_late("queue")).await;
    extended_before_the_answer(|here| here.servers.late("queue")).await;
}

/// The first request has no answer yet when the second finds its entry and is extended.
#[tokio::test(start_paused = true)]
async fn a_first_request_that_is_answered_last_shortens_no_lease() {
    let here = Fixture::new();
    let claim = here.claim(&["a"]);
    let first = here.servers.reply_late("enter");
    let (store, request) = (here.store.clone(), AcquireRequest::new(claim.clone(), TTL));
    let late = tokio::spawn(async move { store.acquire(&request).await });
    sleep(SHORTLY).await;
    here.expect_acquired(&claim).await;
    let renewal = RenewRequest::new(claim.clone(), EXTENDED);
    let renewed = here.store.renew(&[renewal]).await.remove(0);
    assert_eq!(renewed.unwrap(), RenewOutcome::Renewed);
    first.notify_one();
    let outcome = late.await.unwrap();
    assert!(matches!(outcome, Ok(AcquireOutcome::Acquired { .. })), "{outcome:?}");
    sleep(BETWEEN).await;
    assert_eq!(here.servers.queue("a"), [claim.token()], "the lease was shortened");
    assert_eq!(here.release(&claim).await.unwrap(), ReleaseOutcome::Released);
    here.assert_nothing_left();
}

/// Thousands of requests are under way at most as many as the gate admits, and a release comes
/// before those that wait.
///
/// Red without: the order of `Purpose`, or the limit of acquires.
#[tokio::test(start_paused = true)]
async fn a_release_overtakes_the_requests_that_wait() {
    let here = Fixture::new();
    let held = here.claim(&["held"]);
    here.expect_acquired(&held).await;
    let delayed: Vec<_> = (0..64).map(|_| here.servers.reply_late("enter")).collect();
    let ask = |n: usize| {
        let (store, name) = (here.store.clone(), n.to_string());
        let request = AcquireRequest::new(here.claim(&[&name]), TTL);
        tokio::spawn(async move { store.acquire(&request).await })
    };
    let asking: Vec<_> = (0..500).map(ask).collect();
    sleep(SHORTLY).await;
    let sent = || (0..500).filter(|n| !here.servers.queue(&n.to_string()).is_empty()).count();
    assert_eq!(sent(), 64);
    assert_eq!(here.renew(&held).await.unwrap(), RenewOutcome::Renewed);
    let released = timeout(SHORTLY, here.release(&held)).await.expect("it does not wait");
    assert_eq!(released.unwrap(), ReleaseOutcome::Released);
    assert_eq!(sent(), 64);
    delayed.iter().for_each(|one| one.notify_one());
    for one in asking {
        let outcome = one.await.unwrap();
        assert!(matches!(outcome, Ok(AcquireOutcome::Acquired { .. })), "{outcome:?}");
    }
    assert_eq!(sent(), 500);
}

/// A request that waits here has not departed, however long that takes. If its caller gives up,
/// nothing is sent, and its release has nothing to do.
///
/// Red without: the place that its drop gives up, or where the claim departs.
#[tokio::test(start_paused = true)]
async fn a_request_departs_when_there_is_room_and_never_if_its_caller_gave_up() {
    let here = Fixture::new();
    let delayed: Vec<_> = (0..64).map(|_| here.servers.reply_late("enter")).collect();
    let asked = |name: &str| {
        let (store, claim) = (here.store.clone(), here.claim(&[name]));
        let request = AcquireRequest::new(claim.clone(), TTL);
        (claim, async move { store.acquire(&request).await })
    };
    for n in 0..64 {
        tokio::spawn(asked(&n.to_string()).1);
    }
    sleep(SHORTLY).await;
    let (given_up, acquiring) = asked("a");
    given_up.begin_request(true);
    timeout(TTL, acquiring).await.expect_err("the gate is full");
    assert_eq!(given_up.departed_at(), None);
    assert_eq!(here.release(&given_up).await.unwrap(), ReleaseOutcome::NotHeld);
    let (claim, acquiring) = asked("b");
    claim.begin_request(true);
    let waiting = tokio::spawn(acquiring);
    sleep(TTL).await;
    assert_eq!(claim.departed_at(), None);
    delayed.iter().for_each(|one| one.notify_one());
    let acquired = waiting.await.unwrap().unwrap();
    assert!(matches!(acquired, AcquireOutcome::Acquired { .. }), "{acquired:?}");
    assert_eq!(claim.departed_at(), Some(tokio::time::Instant::now()));
    assert_eq!(given_up.departed_at(), None);
    here.release(&claim).await.unwrap();
    here.assert_nothing_left_in(&["a", "b"]);
}
