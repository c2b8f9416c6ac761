//! Leaders: who leads, for how long, and what followers see. Paused clock, in memory; `redis/leaders.rs` has the
//! faults of real processes.

mod silent;
mod unqueued;
mod watch;

use std::cell::Cell;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockattr::testing::TestLocks;
use lockattr::{Error, FencingToken, LockManager, LockOptions, LostReason, Mode, OnLost, Term};
use lockattr_tests::{capture_events, force_release, in_time};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn term() -> LockOptions {
    LockOptions::new().ttl(9 * SECOND)
}

/// What a leader did: its name, and the term in which it began or was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Began(&'static str, FencingToken),
    Dropped(&'static str, FencingToken),
}

/// Tells when it is dropped.
struct Body(UnboundedSender<Did>, &'static str, FencingToken);

impl Drop for Body {
    fn drop(&mut self) {
        self.0.send(Did::Dropped(self.1, self.2)).ok();
    }
}

/// Leads without end under `name`; each term is passed on.
fn leads(
    manager: &LockManager,
    name: &'static str,
    options: LockOptions,
    did: &UnboundedSender<Did>,
    terms: &UnboundedSender<Term>,
) -> JoinHandle<Result<(), Error>> {
    let (manager, did, terms) = (manager.clone(), did.clone(), terms.clone());
    tokio::spawn(async move {
        let body = |term: Term| {
            let (did, terms) = (did.clone(), terms.clone());
            async move {
                let _body = Body(did.clone(), name, term.number());
                did.send(Did::Began(name, term.number())).ok();
                terms.send(term).ok();
                pending::<()>().await;
            }
        };
        manager.lead("scheduler", options, body).await
    })
}

/// A fleet of two processes that campaign.
struct Fleet {
    locks: TestLocks,
    did: UnboundedReceiver<Did>,
    terms: UnboundedReceiver<Term>,
    campaigns: Vec<JoinHandle<Result<(), Error>>>,
}

impl Fleet {
    /// `a` leads, and `b` waits.
    async fn start(options: LockOptions) -> Self {
        let locks = TestLocks::new();
        let ((sends, did), (passes, terms)) = (unbounded_channel(), unbounded_channel());
        let a = leads(locks.manager(), "a", options.clone(), &sends, &passes);
        locks.until_held("scheduler").await;
        let b = leads(&locks.another_process(), "b", options, &sends, &passes);
        locks.until_waiting("scheduler", 1).await;
        Self { locks, did, terms, campaigns: vec![a, b] }
    }

    async fn next(&mut self) -> Did {
        in_time(self.did.recv()).await.expect("no sender")
    }

    async fn term(&mut self) -> Term {
        in_time(self.terms.recv()).await.expect("no sender")
    }
}

/// Red without: the branch for a term that resigned, or the release before the next campaign.
#[tokio::test(start_paused = true)]
async fn a_leader_that_resigns_is_dropped_and_comes_after_those_that_wait() {
    let mut fleet = Fleet::start(term()).await;
    let first = fleet.term().await;
    assert_eq!(fleet.next().await, Did::Began("a", first.number()));

    let began = Instant::now();
    first.resign();
    assert_eq!(fleet.next().await, Did::Dropped("a", first.number()));
    let second = fleet.term().await;
    assert_eq!(fleet.next().await, Did::Began("b", second.number()));
    assert!(second.number() > first.number());
    assert!(began.elapsed() < SECOND / 10, "the store did not hand it over");
    assert!(matches!(first.ensure_held(), Err(Error::Lost { .. })));

    // And back: `a` campaigns again.
    fleet.locks.until_waiting("scheduler", 1).await;
    second.resign();
    assert_eq!(fleet.next().await, Did::Dropped("b", second.number()));
    let third = fleet.term().await;
    assert_eq!(fleet.next().await, Did::Began("a", third.number()));
    assert!(third.number() > second.number());
}

/// Each campaign has its own place in the store's queue.
///
/// Red without: `by_store` in `resolve_lead`.
#[tokio::test(start_paused = true)]
async fn a_leader_that_resigns_comes_after_those_that_wait_though_its_process_campaigns_twice() {
    let mut fleet = Fleet::start(term()).await;
    let (first, (sends, mut did)) = (fleet.term().await, unbounded_channel());
    fleet.next().await;
    let _again = leads(fleet.locks.manager(), "a again", term(), &sends, &unbounded_channel().0);
    fleet.locks.until_waiting("scheduler", 2).await;
    first.resign();
    fleet.next().await;
    let second = fleet.term().await;
    assert_eq!(fleet.next().await, Did::Began("b", second.number()));
    fleet.locks.until_waiting("scheduler", 2).await;
    second.resign();
    assert!(matches!(did.recv().await, Some(Did::Began("a again", _))));
}

/// Red without: the cancellation of the body, or the next campaign after a loss.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_lock_is_taken_is_dropped_and_campaigns_again() {
    let mut fleet = Fleet::start(term()).await;
    let first = fleet.term().await;
    fleet.next().await;
    assert!(force_release(&fleet.locks.another_process(), "scheduler").await.unwrap());
    // Two may believe that they lead until the next renewal: the numbers tell them apart.
    let second = fleet.term().await;
    let mut next = vec![fleet.next().await, fleet.next().await];
    next.sort_by_key(|did| matches!(did, Did::Began(..)));
    assert_eq!(next, [Did::Dropped("a", first.number()), Did::Began("b", second.number())]);
    assert!(second.number() > first.number());
    fleet.locks.until_waiting("scheduler", 1).await;
}

/// Red without: the bound in `valid_until`, or in `at_most`: the store would keep the lock.
#[tokio::test(start_paused = true)]
async fn a_leader_that_reports_no_progress_is_replaced_at_its_bound() {
    let mut fleet = Fleet::start(term().progress_within(30 * SECOND)).await;
    let (first, began) = (fleet.term().await, Instant::now());
    fleet.next().await;
    for _ in 0..7 {
        sleep(20 * SECOND).await;
        first.progress();
    }
    let reported = Instant::now();
    assert_eq!(began.elapsed(), 140 * SECOND, "it led for as long as it reported");
    assert_eq!(fleet.next().await, Did::Dropped("a", first.number()));
    let dropped = reported.elapsed();
    assert!(dropped > 29 * SECOND && dropped <= 30 * SECOND, "{dropped:?}");
    let lost = first.ensure_held();
    assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Silent, .. })), "{lost:?}");
    let second = fleet.term().await;
    assert_eq!(fleet.next().await, Did::Began("b", second.number()));
    assert!(reported.elapsed() <= 30 * SECOND + SECOND / 10, "{:?}", reported.elapsed());
}

/// The store's lease ends by itself: nothing of the silent process runs any more.
///
/// Red without: the bound in `at_most`.
#[tokio::test(start_paused = true)]
async fn the_lease_of_a_silent_leader_ends_in_the_store_without_a_release() {
    let locks = TestLocks::new();
    let options = term().progress_within(30 * SECOND);
    let guard = locks.manager().acquire("scheduler", options).await.unwrap();
    sleep(29 * SECOND).await;
    let left = locks.holder("scheduler").expect("it is held").remaining.unwrap();
    assert!(left <= SECOND + SECOND / 10, "{left:?}");
    locks.cut();
    sleep(2 * SECOND).await;
    locks.assert_free("scheduler");
    drop(guard);
}

/// Red without: `max_hold` in the lease of a term.
#[tokio::test(start_paused = true)]
async fn max_hold_is_the_longest_term() {
    let mut fleet = Fleet::start(term().max_hold(60 * SECOND)).await;
    let mut last = None;
    for leader in ["a", "b", "a", "b"] {
        let term = fleet.term().await;
        let began = Instant::now();
        assert_eq!(fleet.next().await, Did::Began(leader, term.number()));
        assert!(Some(term.number()) > last);
        last = Some(term.number());
        assert_eq!(fleet.next().await, Did::Dropped(leader, term.number()));
        assert!(began.elapsed() > 59 * SECOND && began.elapsed() <= 60 * SECOND);
        if leader == "b" {
            fleet.locks.until_waiting("scheduler", 1).await;
        }
    }
}

/// Red without: `stopped` in the pause, or `ShutDown` as the end of the campaign.
#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_terms_and_campaigns() {
    let mut fleet = Fleet::start(term()).await;
    let first = fleet.term().await;
    fleet.next().await;
    let leader = fleet.campaigns.remove(0);
    fleet.locks.manager().shutdown().await;
    assert!(matches!(leader.await.unwrap(), Err(Error::ShutDown { .. })));
    assert_eq!(fleet.next().await, Did::Dropped("a", first.number()));
    let second = fleet.term().await;
    assert_eq!(fleet.next().await, Did::Began("b", second.number()));
}

/// Red without: the return in `lead_on`, or the release of the note.
#[tokio::test(start_paused = true)]
async fn a_body_that_returns_ends_the_campaign_and_leaves_nothing() {
    let locks = TestLocks::new();
    let runs = Cell::new(0);
    let led = locks.manager().lead("scheduler", term(), async |_term| {
        runs.set(runs.get() + 1);
        sleep(20 * SECOND).await;
        "done"
    });
    assert_eq!(led.await.unwrap(), "done");
    assert_eq!(runs.get(), 1);
    locks.assert_free("scheduler");
    locks.assert_nothing_left().await;
}

/// Its work may have overlapped that of another leader, and nothing else tells.
///
/// Red without: `has_returned` in `lead_on`: the campaign would begin again.
#[tokio::test(start_paused = true)]
async fn a_body_that_returns_when_the_lock_was_taken_ends_the_campaign_as_lost() {
    let locks = TestLocks::new();
    let led = locks.manager().lead("scheduler", term(), async |_term| {
        sleep(SECOND).await;
        drop(locks.steal("scheduler"));
    });
    let led = timeout(60 * SECOND, led).await.expect("it campaigns again");
    assert!(matches!(led, Err(Error::Lost { reason: LostReason::Taken, .. })), "{led:?}");
}

/// Red without: the second campaign after a body that panicked would be no harm; the lock must be free.
#[tokio::test(start_paused = true)]
async fn a_body_that_panics_ends_the_campaign_and_frees_the_lock() {
    let mut fleet = Fleet::start(term()).await;
    fleet.next().await;
    let manager = fleet.locks.another_process();
    let panics = tokio::spawn(async move {
        manager.lead("other", term(), async |_term| panic!("as planned")).await
    });
    assert!(panics.await.is_err_and(|error| error.is_panic()));
    fleet.locks.until_free("other").await;
    // A dropped campaign frees its lock as well.
    fleet.campaigns[0].abort();
    assert!(matches!(fleet.next().await, Did::Dropped("a", _)));
    assert!(matches!(fleet.next().await, Did::Began("b", _)));
}

/// Red without: each of the checks in `resolve_lead` and `lead_on`.
#[tokio::test(start_paused = true)]
async fn options_that_do_not_fit_a_leader_are_refused_by_name() {
    let locks = TestLocks::new();
    let o = LockOptions::new;
    let refused = [
        (o().wait(SECOND), "wait"),
        (o().retry(3), "retry"),
        (o().retry_delay(SECOND), "retry_delay"),
        (o().hold_at_least(SECOND), "hold_at_least"),
        (o().on_lost(OnLost::Ignore), "on_lost"),
        (o().mode(Mode::Shared), "mode"),
        (o().permits(2), "permits"),
        (o().ttl(9 * SECOND).progress_within(8 * SECOND), "progress_within"),
    ];
    for (options, name) in refused {
        let led = locks.manager().lead("scheduler", options, async |_term| ()).await;
        let Err(Error::InvalidOptions(why)) = led else { panic!("{name}: {led:?}") };
        assert!(why.contains(&format!("`{name}`")), "{name}: {why}");
    }
    let inside = locks.manager().with_lock("scheduler", o(), async |_| {
        locks.manager().lead("scheduler", o(), async |_term| ()).await
    });
    let inside = inside.await.unwrap();
    assert!(
        matches!(&inside, Err(Error::InvalidOptions(why)) if why.contains("`scheduler`")),
        "{inside:?}"
    );
    // One silence is that of one holder.
    for options in [o().mode(Mode::Shared), o().permits(2)] {
        let options = options.ttl(9 * SECOND).progress_within(9 * SECOND);
        let got = locks.manager().acquire("stock", options).await;
        assert!(matches!(got, Err(Error::InvalidOptions(_))), "{got:?}");
    }
}

/// Red without: the warning of `campaign_learned`, if every failure warned, or only the first of all outages.
#[tokio::test(start_paused = true)]
async fn a_campaign_outlasts_an_outage_and_warns_once() {
    let events = capture_events();
    let mut fleet = Fleet::start(term()).await;
    let first = fleet.term().await;
    fleet.next().await;
    fleet.locks.cut();
    assert_eq!(fleet.next().await, Did::Dropped("a", first.number()));
    sleep(600 * SECOND).await;
    fleet.locks.mend();
    let mended = Instant::now();
    assert!(matches!(fleet.next().await, Did::Began(..)));
    assert!(mended.elapsed() <= SECOND, "{:?}", mended.elapsed());
    // Each of the two processes.
    assert_eq!(events.count("the campaign goes on"), 2);
    // The follower had an answer in between, so the next outage is a new one.
    fleet.locks.until_waiting("scheduler", 1).await;
    sleep(60 * SECOND).await;
    fleet.locks.cut();
    sleep(60 * SECOND).await;
    assert_eq!(events.count("the campaign goes on"), 4);
}

/// Here nothing else wakes the campaign: a store that reconnects would.
///
/// Red without: the pause after a failure in `campaign_again_at`.
#[tokio::test(start_paused = true)]
async fn a_campaign_asks_a_store_that_failed_again_within_a_second() {
    let locks = TestLocks::new();
    locks.fail_next(5);
    let began = Instant::now();
    let led = locks.manager().lead("scheduler", term(), async |_term| began.elapsed());
    let after = led.await.unwrap();
    assert!(after >= 5 * SECOND / 2 && after <= 5 * SECOND, "{after:?}");
}

/// Red without: the pause of `campaign_again_at`, which is twice that of other waiters.
#[tokio::test(start_paused = true)]
async fn a_follower_sends_at_most_ten_requests_a_minute() {
    let minutes = 10;
    let requests = async |followers: usize| {
        let locks = TestLocks::new();
        let (did, terms) = (unbounded_channel().0, unbounded_channel().0);
        let options = LockOptions::new();
        let mut campaigns = vec![leads(locks.manager(), "a", options.clone(), &did, &terms)];
        locks.until_held("scheduler").await;
        for _ in 0..followers {
            campaigns.push(leads(&locks.another_process(), "b", options.clone(), &did, &terms));
        }
        locks.until_waiting("scheduler", followers).await;
        sleep(60 * SECOND).await;
        let before = locks.requests();
        sleep(minutes * 60 * SECOND).await;
        campaigns.iter().for_each(JoinHandle::abort);
        locks.requests() - before
    };
    let (alone, with_followers) = (requests(0).await, requests(5).await);
    let each = (with_followers - alone) as f64 / 5.0 / f64::from(minutes);
    assert!(each <= 10.0, "{each} a minute");
    // It still asks: a notification may be lost.
    assert!(each >= 5.0, "{each} a minute");
}

/// A follower takes over when the lease of a killed leader ends, and not a recheck later.
///
/// Red without: the leader's remaining time in `campaign_again_at`.
#[tokio::test(start_paused = true)]
async fn a_follower_takes_over_when_the_lease_of_the_leader_ends() {
    for asked_before in [0, 1, 2, 3, 4, 5] {
        let locks = TestLocks::new();
        let (did, mut happened) = unbounded_channel();
        let dies = term().renew(false).on_lost(OnLost::Ignore);
        let (killed, began) = (locks.manager().acquire("scheduler", dies).await, Instant::now());
        sleep(Duration::from_millis(700 * asked_before)).await;
        let campaign = leads(&locks.another_process(), "b", term(), &did, &unbounded_channel().0);
        happened.recv().await;
        let after = began.elapsed();
        assert!(after >= 9 * SECOND && after < 9 * SECOND + SECOND / 10, "{after:?}");
        campaign.abort();
        drop(killed);
    }
}

/// Arguments of the attribute's form are of one term.
#[tokio::test(start_paused = true)]
async fn an_annotated_function_leads() {
    #[lockattr::distributed_lock(key = "scheduler:<region>", lead = true, ttl = "9s", term = term)]
    async fn schedule(
        region: &str,
        mut jobs: Vec<u32>,
        runs: Arc<AtomicU32>,
    ) -> Result<u32, Error> {
        assert_eq!(lockattr::current().unwrap().fencing_token(), term.number());
        jobs.push(runs.fetch_add(1, Ordering::Relaxed));
        if jobs.len() < 3 || runs.load(Ordering::Relaxed) < 3 {
            term.resign();
            pending::<()>().await;
        }
        Ok(jobs.iter().sum())
    }
    let locks = TestLocks::new();
    let runs = Arc::new(AtomicU32::new(0));
    let led = locks.scope(schedule("eu", vec![10, 20], runs.clone())).await;
    assert_eq!((led.unwrap(), runs.load(Ordering::Relaxed)), (32, 3));
    locks.assert_nothing_left().await;
}
