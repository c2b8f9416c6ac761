//! Waiting sends no statements, and waiters that are gone block no other waiter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, Notification, PostgresStore, ReleaseOutcome,
    ReleaseRequest, Sharing, Store, Subscriber, Waiting,
};
use lockattr_tests::{Node, for_store, in_time, node};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;

/// Counts the queued waiters that a live connection listens for.
const HEARD: &str = "select count(*) from lockattr_queue join pg_locks on locktype = 'advisory'
    and granted and listener = (classid::bigint << 32) | objid::bigint";

/// The next renewal is due after 100 s. An entry lasts for 15 s, and its process keeps it with a
/// request after each third of that.
///
/// Red without: the pause of queued waiters while nothing is notified.
#[tokio::test]
async fn a_waiter_sends_three_requests_in_the_life_of_its_entry() {
    let database = Database::new().await;
    let query = "heartbeat=1h";
    let first = database.manager(query).await;
    let holder = acquire(&first, "a").await;
    let managers = join_all((0..20).map(|_| database.manager(query))).await;
    let mut waiting = JoinSet::new();
    for manager in managers {
        waiting.spawn(async move { acquire(&manager, "a").await.release().await.unwrap() });
    }
    database.waiting(20).await;
    // All of them on one connection, so that the count is up to date.
    let client = database.server.client_of(&database.name).await;
    let asked = "select max(asked)::text from lockattr_queue";
    let since: String = client.query_one(asked, &[]).await.unwrap().get(0);
    let began = Instant::now();
    let mut last = BTreeMap::<Vec<u8>, BTreeSet<String>>::new();
    while began.elapsed() < Duration::from_secs(7) || last.len() < 20 {
        let entries = "select token, asked::text from lockattr_queue where asked::text > $1";
        for row in client.query(entries, &[&since]).await.unwrap() {
            last.entry(row.get(0)).or_default().insert(row.get(1));
        }
        sleep(Duration::from_millis(50)).await;
    }
    let passed = "select extract(epoch from clock_timestamp() - $1::text::timestamptz)::float8";
    let passed: f64 = client.query_one(passed, &[&since]).await.unwrap().get(0);
    let requests: Vec<_> = last.values().map(BTreeSet::len).collect();
    let is_seldom = |&count: &usize| (count as f64) <= passed / 5.0 + 1.0;
    assert!(requests.iter().all(is_seldom), "{requests:?} in {passed} s");
    holder.release().await.unwrap();
    while let Some(worked) = waiting.join_next().await {
        worked.unwrap();
    }
    database.has_nothing_left().await;
}

#[tokio::test]
async fn heads_of_the_queue_that_were_killed_are_passed_over_at_once() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let holder = acquire(&manager, "a").await;
    let mut killed: Vec<Node> = Vec::new();
    for place in 1..=3 {
        let mut node = node!("lock", url = database.url_with(""));
        node.say("acquire a").await;
        killed.push(node);
        database.waiting(place).await;
    }
    let last = database.manager("").await;
    let last = tokio::spawn(async move { acquire(&last, "a").await });
    database.waiting(4).await;
    for mut node in killed {
        node.kill();
    }
    // Until the server notices their end, they count as alive.
    eventually("one is notified", async || database.number(HEARD).await == 1).await;
    // If a head were granted the lock, that would be for ten minutes.
    holder.release().await.unwrap();
    let guard = in_time(last).await.unwrap();
    guard.release().await.unwrap();
    database.has_nothing_left().await;
}

/// A stopped process keeps its connection, and sends no request.
#[tokio::test]
async fn a_waiter_that_sends_no_more_requests_is_passed_over() {
    let database = Database::new().await;
    let (manager, next) = (database.manager("").await, database.manager("").await);
    let holder = acquire(&manager, "a").await;
    let mut stopped = node!("lock", url = database.url_with(""));
    stopped.say("acquire a").await;
    database.waiting(1).await;
    stopped.stop_signal();
    let next = tokio::spawn(async move { acquire(&next, "a").await });
    database.waiting(2).await;
    let first = "(select min(place) from lockattr_queue)";
    let ages = "update lockattr_queue set asked = asked - interval '1 minute' where place = ";
    database.run(&format!("{ages}{first}")).await;
    // If it were granted the lock, that would be for nine minutes.
    holder.release().await.unwrap();
    let guard = in_time(next).await.unwrap();
    guard.release().await.unwrap();
    stopped.kill();
    database.has_nothing_left().await;
}

/// Claims for two of a few keys each, in any order, from several managers, beside claims for one
/// key.
#[tokio::test]
async fn overlapping_claims_never_deadlock() {
    let database = Database::new().await;
    let inside = Arc::new([const { AtomicUsize::new(0) }; 4]);
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let manager = database.manager("linger=0s").await;
        let inside = inside.clone();
        tasks.spawn(async move {
            for round in 0..25 {
                let (one, other) = ((n + round) % 4, (n * 3 + round * 2 + 1) % 4);
                let names = [format!("key {one}"), format!("key {other}")];
                let guard = manager.acquire_all(&names, LockOptions::new()).await.unwrap();
                let keys: BTreeSet<usize> = [one, other].into();
                for &key in &keys {
                    assert_eq!(inside[key].fetch_add(1, Ordering::SeqCst), 0, "two at once");
                }
                tokio::task::yield_now().await;
                for key in keys {
                    inside[key].fetch_sub(1, Ordering::SeqCst);
                }
                guard.release().await.unwrap();
            }
        });
    }
    while let Some(worked) = tasks.join_next().await {
        worked.unwrap();
    }
    database.has_nothing_left().await;
    // The server counts deadlocks once the sessions are idle.
    sleep(Duration::from_secs(1)).await;
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(database.number(deadlocks).await, 0, "deadlocks");
}

#[tokio::test]
async fn a_waiter_outlives_the_end_of_every_session() {
    let database = Database::new().await;
    let first = database.manager("").await;
    let holder = acquire(&first, "a").await;
    let next = database.manager("").await;
    let next = tokio::spawn(async move { acquire(&next, "a").await });
    database.waiting(1).await;
    let asked = async || {
        let asked = "select (extract(epoch from max(asked)) * 1000)::bigint from lockattr_queue";
        database.number(asked).await
    };
    // The waiter keeps its place, and a connection listens for it again, sooner than five seconds after its last
    // request, when it would ask anyway. A thread without a core may be later.
    let at_once = async || {
        let before = asked().await;
        database
            .run(
                "select pg_terminate_backend(pid) from pg_stat_activity
                    where datname = current_database() and pid <> pg_backend_pid()",
            )
            .await;
        let again = async || asked().await > before && database.number(HEARD).await == 1;
        eventually("subscribed again", again).await;
        asked().await < before + 4_900
    };
    eventually("subscribed again at once", at_once).await;
    holder.release().await.unwrap();
    let guard = in_time(next).await.unwrap();
    guard.release().await.unwrap();
    database.has_nothing_left().await;
}

/// The process that holds the lock has acquired it by a plain statement, and was not told of the
/// waiter.
///
/// Red without: `waiting = 0` in `DELETE` or `DELETE_MANY`.
#[tokio::test]
async fn a_release_finds_a_waiter_that_its_process_does_not_know() {
    let database = Database::new().await;
    // Of one connection, because requests share a statement only there.
    let url = for_store(&database.url_with("connections=1"));
    let stores: Vec<_> = (0..2).map(|_| Arc::new(PostgresStore::open(&url).unwrap())).collect();
    let subscriber = Arc::new(Subscriber::new(|_name| {}));
    stores[1].subscribe(&subscriber);
    let claim = |name: &str| {
        let key = LockKey::new("lock:", name).unwrap();
        Arc::new(Claim::of(&subscriber, key, [], Sharing::Exclusive, ""))
    };
    let ttl = Duration::from_secs(60);
    for names in [&["alone"][..], &["one of many", "another"]] {
        let (mut held, mut queued) = (Vec::new(), Vec::new());
        for name in names {
            held.push(claim(name));
            stores[0]
                .acquire(&AcquireRequest::new(held[held.len() - 1].clone(), ttl))
                .await
                .unwrap();
            let waiter = claim(name);
            queued.push(subscriber.subscribe(waiter.token()));
            let request = AcquireRequest::new(waiter.clone(), ttl).waiting(Waiting::Queued);
            let outcome = stores[1].acquire(&request).await.unwrap();
            assert!(matches!(outcome, AcquireOutcome::Held { queued: Some(_), .. }));
        }
        let releases: Vec<_> = held.into_iter().map(ReleaseRequest::new).collect();
        for released in stores[0].release(&releases).await {
            assert!(matches!(released, Ok(ReleaseOutcome::Released)));
        }
        // No claim asks again here.
        for subscription in queued {
            let granted = in_time(subscription.next()).await;
            assert!(matches!(granted, Notification::Granted(_)), "{granted:?}");
        }
    }
}

/// No process listens for the message of the waiter, which came before.
///
/// Red without: `any_may_be_contended` where the process begins to listen.
#[tokio::test]
async fn a_process_that_begins_to_listen_learns_that_others_may_wait() {
    let database = Database::new().await;
    let url = for_store(&database.url_with(""));
    let [here, there] = [(); 2].map(|()| PostgresStore::open(&url).unwrap());
    let is_notified = Arc::new(AtomicBool::new(false));
    let notified = is_notified.clone();
    // Any of its locks.
    let any = move |name: Option<&str>| notified.store(name.is_none(), Ordering::SeqCst);
    let [holder, other] = [Arc::new(Subscriber::new(any)), Arc::new(Subscriber::new(|_name| {}))];
    here.subscribe(&holder);
    there.subscribe(&other);
    let key = LockKey::new("lock:", "a").unwrap();
    let claim =
        |subscriber| Arc::new(Claim::of(subscriber, key.clone(), [], Sharing::Exclusive, ""));
    let [held, waiter] = [&holder, &other].map(|subscriber| claim(subscriber));
    let request = |claim: &Arc<Claim>| AcquireRequest::new(claim.clone(), Duration::from_secs(600));
    here.acquire(&request(&held)).await.unwrap();
    let outcome = there.acquire(&request(&waiter).waiting(Waiting::Queued)).await.unwrap();
    assert!(matches!(outcome, AcquireOutcome::Held { queued: Some(_), .. }));
    here.watch_for_waiters(&held, Instant::now() + Duration::from_secs(600));
    eventually("it is notified", async || is_notified.load(Ordering::SeqCst)).await;
    there.release(&[ReleaseRequest::new(waiter)]).await;
    here.release(&[ReleaseRequest::new(held)]).await;
    database.has_nothing_left().await;
}
