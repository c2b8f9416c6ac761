//! What followers learn of the leader: who it is and in which term, and by which requests.

use super::*;

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
    assert!(taken.force_release("scheduler").await.unwrap());
    let second = fleet.term().await;
    let leader = taken.leader("scheduler").await.unwrap().unwrap();
    assert_ne!(leader.term, Some(first.number()));
    sleep(10 * SECOND).await;
    let leader = taken.leader("scheduler").await.unwrap().unwrap();
    assert_eq!(leader.term, Some(second.number()));
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
    let _held = observer.acquire("scheduler", term()).await.unwrap();
    assert!(watch.changed().await.unwrap().is_some());
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
