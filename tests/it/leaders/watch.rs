//! What followers learn of the leader: who it is and in which term, and by which requests.

use lockattr::LeaderWatch;

use super::*;
use lockattr_tests::force_release;

/// A process that leads, and one that follows and watches it.
struct BesideACampaign {
    locks: TestLocks,
    follower: LockManager,
    first: Term,
    terms: UnboundedReceiver<Term>,
    watch: LeaderWatch,
}

impl BesideACampaign {
    async fn start() -> Self {
        let locks = TestLocks::new();
        let (did, (passes, mut terms)) = (unbounded_channel().0, unbounded_channel());
        leads(locks.manager(), "a", term(), &did, &passes);
        locks.until_held("scheduler").await;
        let follower = locks.another_process();
        leads(&follower, "b", term(), &did, &passes);
        locks.until_waiting("scheduler", 1).await;
        let first = terms.recv().await.expect("a term");
        let mut watch = follower.watch_leader("scheduler").unwrap();
        assert_eq!(watch.changed().await.unwrap().unwrap().term, Some(first.number()));
        Self { locks, follower, first, terms, watch }
    }
}

/// Red without: the note, its word in the label, or the comparison with the holder.
#[tokio::test(start_paused = true)]
async fn followers_learn_who_leads_and_in_which_term() {
    let mut fleet = Fleet::start(term()).await;
    let reader = fleet.locks.another_process();
    let first = fleet.term().await;
    sleep(SECOND).await;
    let leader = reader.leader("scheduler").await.unwrap().unwrap();
    assert_eq!(leader.term, Some(first.number()));
    assert_eq!(leader.holder.process, Some(std::process::id()));
    // As long as it leads.
    sleep(100 * SECOND).await;
    assert_eq!(reader.leader("scheduler").await.unwrap().unwrap().term, Some(first.number()));

    first.resign();
    let second = fleet.term().await;
    sleep(SECOND).await;
    assert_eq!(reader.leader("scheduler").await.unwrap().unwrap().term, Some(second.number()));
    fleet.campaigns.iter().for_each(JoinHandle::abort);
    fleet.locks.until_free("scheduler").await;
    assert_eq!(reader.leader("scheduler").await.unwrap(), None);
    fleet.locks.assert_nothing_left().await;

    // A lock that was taken in another way has a holder and no term.
    let _held = reader.acquire("scheduler", term()).await.unwrap();
    assert_eq!(reader.leader("scheduler").await.unwrap().unwrap().term, None);
}

/// The note of a killed leader outlives its lock for a moment, and is not taken for that of the next.
///
/// Red without: the comparison of the times in `term_of`, or the second attempt in `leave`.
#[tokio::test(start_paused = true)]
async fn the_note_of_a_dead_leader_is_not_the_term_of_the_next() {
    let mut fleet = Fleet::start(term()).await;
    let first = fleet.term().await;
    sleep(SECOND).await;
    // As if its process had ended: it renews nothing more, and releases nothing.
    let taken = fleet.locks.another_process();
    assert!(force_release(&taken, "scheduler").await.unwrap());
    let second = fleet.term().await;
    let leader = taken.leader("scheduler").await.unwrap().unwrap();
    assert_ne!(leader.term, Some(first.number()));
    // The next leader does not wait until that note ends.
    sleep(SECOND).await;
    let leader = taken.leader("scheduler").await.unwrap().unwrap();
    assert_eq!(leader.term, Some(second.number()));
}

/// A holder that does not lead removes no note, and has no term.
///
/// Red without: the comparison of the times in `term_of`.
#[tokio::test(start_paused = true)]
async fn the_note_of_a_dead_leader_is_not_the_term_of_a_holder_of_the_same_process() {
    let locks = TestLocks::new();
    let (did, (passes, mut passed)) = (unbounded_channel().0, unbounded_channel());
    let leader = leads(locks.manager(), "a", term(), &did, &passes);
    let first = passed.recv().await.unwrap();
    sleep(SECOND).await;
    let seen = locks.manager().leader("scheduler").await.unwrap().unwrap();
    assert_eq!(seen.term, Some(first.number()));
    // A label has real milliseconds, and the clock of the test stands still.
    let began = seen.holder.since.expect("its label says it");
    while began.elapsed().is_ok_and(|passed| passed < Duration::from_millis(2)) {
        std::hint::spin_loop();
    }
    let taken = locks.another_process();
    assert!(force_release(&taken, "scheduler").await.unwrap());
    let held = taken.acquire("scheduler", term()).await.unwrap();
    let seen = taken.leader("scheduler").await.unwrap().unwrap();
    assert_eq!(seen.term, None, "it is that of {}", first.number());
    leader.abort();
    drop(held);
}

/// Red without: the timer of the watch, or the second question for the term.
#[tokio::test(start_paused = true)]
async fn a_watch_without_a_campaign_sees_each_term_within_its_interval() {
    let mut fleet = Fleet::start(term()).await;
    let observer = fleet.locks.another_process();
    let mut watch = observer.watch_leader("scheduler").unwrap();
    let first = fleet.term().await;
    let seen = watch.changed().await.unwrap().unwrap();
    let seen = if seen.term.is_none() { watch.changed().await.unwrap().unwrap() } else { seen };
    assert_eq!(seen.term, Some(first.number()));
    let resigned = Instant::now();
    first.resign();
    let second = fleet.term().await;
    let mut seen = watch.changed().await.unwrap().unwrap();
    if seen.term.is_none() {
        seen = watch.changed().await.unwrap().unwrap();
    }
    assert_eq!(seen.term, Some(second.number()));
    assert_eq!(watch.last().unwrap().term, Some(second.number()));
    assert!(resigned.elapsed() <= 12 * SECOND, "{:?}", resigned.elapsed());
    fleet.campaigns.iter().for_each(JoinHandle::abort);
    assert_eq!(watch.changed().await.unwrap(), None);

    // Errors end no watch.
    fleet.locks.cut();
    assert!(matches!(watch.changed().await, Err(Error::Store { .. })));
    fleet.locks.mend();
    let (_held, acquired) = (observer.acquire("scheduler", term()).await.unwrap(), Instant::now());
    assert!(watch.changed().await.unwrap().is_some());
    assert!(acquired.elapsed() <= SECOND, "{:?}", acquired.elapsed());
    observer.shutdown().await;
    assert!(matches!(watch.changed().await, Err(Error::ShutDown { .. })));
}

/// Red without: `campaign_learned`, or the receiver in the watch: it would ask every ten seconds.
#[tokio::test(start_paused = true)]
async fn a_watch_beside_a_campaign_sends_no_requests_of_its_own_until_the_leader_changes() {
    let locks = TestLocks::new();
    let (did, terms) = (unbounded_channel().0, unbounded_channel());
    let mut passed = terms.1;
    let _a = leads(locks.manager(), "a", term(), &did, &terms.0);
    locks.until_held("scheduler").await;
    let follower = locks.another_process();
    let _b = leads(&follower, "b", term(), &did, &terms.0);
    locks.until_waiting("scheduler", 1).await;
    let first = passed.recv().await.unwrap();
    sleep(60 * SECOND).await;

    let requests = async || {
        let before = locks.requests();
        sleep(600 * SECOND).await;
        locks.requests() - before
    };
    let without = requests().await;
    let mut watch = follower.watch_leader("scheduler").unwrap();
    let seen = watch.changed().await.unwrap().unwrap();
    assert_eq!(seen.term, Some(first.number()));
    let changes = tokio::spawn(async move {
        let seen = watch.changed().await.unwrap().unwrap();
        (seen, watch)
    });
    let with = requests().await;
    assert!(with <= without + 2, "{with} requests with a watch, {without} without");
    first.resign();
    let second = passed.recv().await.unwrap();
    let (mut seen, mut watch) = changes.await.unwrap();
    if seen.term.is_none() {
        seen = watch.changed().await.unwrap().unwrap();
    }
    assert_eq!(seen.term, Some(second.number()));
}

/// Red without: what a leader tells the watches of its process, or their second question for the term.
#[tokio::test(start_paused = true)]
async fn a_watch_in_the_process_of_the_leader_sees_its_term_within_seconds() {
    let locks = TestLocks::new();
    let manager = locks.manager().clone();
    let mut watch = manager.watch_leader("scheduler").unwrap();
    let none = timeout(SECOND, watch.changed()).await;
    assert!(none.is_err(), "{none:?}");
    let body = {
        let locks = locks.clone();
        move |_term| {
            // Its note is the next request.
            locks.fail_next(1);
            pending::<()>()
        }
    };
    let began = Instant::now();
    let led = tokio::spawn(async move { manager.lead("scheduler", term(), body).await });
    let seen = watch.changed().await.unwrap().unwrap();
    assert_eq!(seen.term, None);
    assert!(began.elapsed() < SECOND / 10, "{:?}", began.elapsed());
    let seen = watch.changed().await.unwrap().unwrap();
    assert!(seen.term.is_some());
    assert!(began.elapsed() <= 2 * SECOND, "{:?}", began.elapsed());
    led.abort();
}

/// Red without: the question of a watch that has seen no leader.
#[tokio::test(start_paused = true)]
async fn a_new_watch_beside_a_campaign_asks_at_once() {
    let scene = BesideACampaign::start().await;
    // The campaign has told the other watch.
    sleep(60 * SECOND).await;
    let mut watch = scene.follower.watch_leader("scheduler").unwrap();
    let seen = timeout(SECOND, watch.changed()).await.expect("at once").unwrap().unwrap();
    assert_eq!(seen.term, Some(scene.first.number()));
    assert_eq!(scene.watch.last().unwrap().term, seen.term);
}

/// The campaign tells of each change once.
///
/// Red without: `unanswered` in the watch: it would not ask before the campaign has nothing new for ten seconds.
#[tokio::test(start_paused = true)]
async fn a_watch_beside_a_campaign_asks_again_if_it_got_no_answer() {
    let BesideACampaign { locks, first, mut terms, mut watch, .. } = BesideACampaign::start().await;
    // Its process leads. The caller drops `changed` while it asks.
    first.resign();
    let second = terms.recv().await.unwrap();
    locks.slow(SECOND);
    assert!(timeout(SECOND / 2, watch.changed()).await.is_err());
    locks.mend();
    let seen = timeout(SECOND, watch.changed()).await.expect("at once").unwrap().unwrap();
    assert_eq!(seen.term, Some(second.number()));

    // Its process follows, and its campaign is answered. By then the other process waits again: after its pause.
    sleep(3 * SECOND).await;
    second.resign();
    let third = terms.recv().await.unwrap();
    sleep(3 * SECOND).await;
    locks.fail_next(1);
    let failed = watch.changed().await;
    assert!(matches!(failed, Err(Error::Store { .. })), "{failed:?}");
    let seen = timeout(2 * SECOND, watch.changed()).await.expect("again").unwrap().unwrap();
    assert_eq!(seen.term, Some(third.number()));
}

/// Red without: the release of a note that may have been left (`Drop` of `TermNote`).
#[tokio::test(start_paused = true)]
async fn a_note_without_an_answer_ends_with_its_term() {
    let locks = TestLocks::new();
    let led = locks.manager().lead("scheduler", term(), async |_term| {
        // The note arrives, and its answer does not.
        locks.lose_answers();
        sleep(SECOND / 2).await;
        locks.mend();
    });
    led.await.unwrap();
    locks.assert_nothing_left().await;
}

/// Red without: the names of terms in `is_note`.
#[tokio::test(start_paused = true)]
async fn the_note_of_a_term_is_not_listed_as_a_lock() {
    let locks = TestLocks::with(LockManager::builder().prefix("")).unwrap();
    let (did, (passes, mut passed)) = (unbounded_channel().0, unbounded_channel());
    let leader = leads(locks.manager(), "a", term(), &did, &passes);
    passed.recv().await.unwrap();
    sleep(SECOND).await;
    let reader = locks.another_process();
    assert!(reader.holder("lockattr:term:scheduler").await.unwrap().is_some(), "no note");
    let held = reader.held_locks().await.unwrap();
    assert!(held.iter().map(|held| held.key.as_str()).eq(["scheduler"]), "{held:?}");
    leader.abort();
}
