//! The free path: an uncontended lock is acquired and released by plain commands. These tests check
//! what the scripts guarantee for it, and when the plain commands are not used.

mod counter;
mod crowd;

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, RedisStore, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Sharing, Store, Subscriber, Waiting,
};
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{
    Cli, RedisServer, assert_nothing_left, eventually, for_store, in_time, with_query,
};
use tokio::task::JoinHandle;

/// Longer than any test here waits.
const LONG: Duration = Duration::from_secs(3_600);

/// A lease that is shorter, and lasts all the same.
const MINUTE: Duration = Duration::from_secs(60);

/// The same as a setting; and a connection counts by plain commands for as long as there is no heartbeat.
const PATIENT: &str = "ttl=1h&wait=10h&heartbeat=10h&connections=1";

async fn manager(server: &RedisServer, query: &str) -> LockManager {
    LockManager::connect(with_query(&server.url_with(PATIENT), query)).await.unwrap()
}

async fn round(manager: &LockManager) -> u64 {
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    let token = guard.fencing_token().get();
    guard.release().await.unwrap();
    token
}

async fn calls(cli: &Cli, command: &str) -> u64 {
    cli.commandstats().await.get(command).copied().unwrap_or_default()
}

/// A waiter for `a`, once it is in the queue.
async fn waiter(cli: &Cli, manager: &LockManager) -> JoinHandle<lockattr::LockGuard> {
    let manager = manager.clone();
    let waits =
        tokio::spawn(async move { manager.acquire("a", LockOptions::new()).await.unwrap() });
    eventually("it is queued", async || queued(cli).await == 1).await;
    waits
}

async fn queued(cli: &Cli) -> usize {
    cli.query(&["ZCARD", "lockattr:line-of:{lock:a}"]).await
}

/// Claims as managers make them, each of its own process, over one store.
struct Claims {
    store: RedisStore,
    subscriber: Arc<Subscriber>,
}

impl Claims {
    fn new(server: &RedisServer) -> Self {
        let store = RedisStore::open(&for_store(&server.url())).unwrap();
        let subscriber = Arc::new(Subscriber::new(|_| {}));
        store.subscribe(&subscriber);
        Self { store, subscriber }
    }

    fn claim(&self, keys: &[&str], sharing: Sharing) -> Arc<Claim> {
        let mut keys = keys.iter().map(|key| LockKey::new("lock:", key).unwrap());
        let first = keys.next().expect("a key");
        Arc::new(Claim::of(&self.subscriber, first, keys, sharing, "service=free"))
    }

    fn exclusive(&self) -> Arc<Claim> {
        self.claim(&["a"], Sharing::Exclusive)
    }

    async fn asks(&self, claim: &Arc<Claim>, ttl: Duration) -> bool {
        let outcome = self.store.acquire(&AcquireRequest::new(claim.clone(), ttl)).await.unwrap();
        matches!(outcome, AcquireOutcome::Acquired { .. })
    }

    /// Asks, and joins the wait queue if the claim is refused.
    async fn waits(&self, claim: &Arc<Claim>, ttl: Duration) -> bool {
        let request = AcquireRequest::new(claim.clone(), ttl).waiting(Waiting::Queued);
        matches!(self.store.acquire(&request).await.unwrap(), AcquireOutcome::Acquired { .. })
    }

    async fn releases(&self, releasing: ReleaseRequest) -> ReleaseOutcome {
        self.store.release(&[releasing]).await.remove(0).unwrap()
    }
}

#[tokio::test]
async fn a_free_lock_needs_no_script_except_the_first_of_a_connection() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server, PATIENT).await);
    let connected = calls(&cli, "exists").await;
    round(&manager).await;
    let before = calls(&cli, "incr").await;
    let mut last = 0;
    for _ in 0..20 {
        let token = round(&manager).await;
        assert!(token > last);
        last = token;
    }
    let counted = calls(&cli, "incr").await - before;
    assert_eq!(counted, 20, "each of them was counted by a plain command");
    assert_eq!(
        calls(&cli, "exists").await - connected,
        1,
        "only the script of the first one checks for a queue"
    );
    assert_nothing_left(&server).await;
}

/// A lease ends while a claim waits. The lock then has no holder, but its key still exists, so no
/// newcomer overtakes.
#[tokio::test]
async fn a_lock_with_a_waiter_is_never_absent() {
    let server = RedisServer::start().await;
    let (cli, claims) = (server.cli().await, Claims::new(&server));
    // The counter is raised on this connection, so its attempts on free locks are plain commands.
    let first = claims.claim(&["other"], Sharing::Exclusive);
    assert!(claims.asks(&first, LONG).await);
    let (holder, waits, newcomer) = (claims.exclusive(), claims.exclusive(), claims.exclusive());
    // Shorter than the queue lasts.
    assert!(claims.asks(&holder, Duration::from_secs(12)).await);
    assert!(!claims.waits(&waits, LONG).await);
    let ends = async |key| cli.query::<i64>(&["PEXPIRETIME", key]).await;
    // One command after the other sets them, which a busy machine may keep apart; each is set again
    // sixteen seconds before it ends.
    assert!(ends("lock:a").await > ends("lockattr:line-of:{lock:a}").await - 16_000);
    cli.end_lease("lock:a", "").await;
    assert!(!Claims::new(&server).asks(&newcomer, LONG).await, "it overtook a waiter");
    assert!(claims.waits(&waits, LONG).await, "granted");
    assert_eq!(claims.releases(ReleaseRequest::new(holder)).await, ReleaseOutcome::NotHeld);
    assert_eq!(cli.held_value("lock:a").await.as_deref(), Some(waits.value()));
    for claim in [waits, first] {
        assert_eq!(claims.releases(ReleaseRequest::new(claim)).await, ReleaseOutcome::Released);
    }
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_renewal_moves_the_end_that_the_mark_says_and_never_back() {
    let server = RedisServer::start().await;
    let (cli, claims) = (server.cli().await, Claims::new(&server));
    let (holder, waits) = (claims.exclusive(), claims.exclusive());
    assert!(claims.asks(&holder, MINUTE).await);
    assert!(!claims.waits(&waits, LONG).await);
    let until = async || -> u64 {
        let value = cli.value("lock:a").await.expect("it is held");
        let until = value.strip_prefix("queued=1 until=").expect("it is marked");
        until.split(' ').next().and_then(|millis| millis.parse().ok()).expect("milliseconds")
    };
    let begins = until().await;
    for (ttl, grows) in [(LONG, true), (Duration::from_secs(1), false)] {
        let before = until().await;
        let renewals = [RenewRequest::new(holder.clone(), ttl)];
        assert_eq!(claims.store.renew(&renewals).await.remove(0).unwrap(), RenewOutcome::Renewed);
        assert_eq!(until().await > before, grows, "{ttl:?}");
    }
    assert!(until().await - begins > 3_000_000);
    assert!(
        cli.pttl("lock:a").await > 3_000_000,
        "a marked key lasts until the later of both ends"
    );
    for claim in [holder, waits] {
        assert_eq!(claims.releases(ReleaseRequest::new(claim)).await, ReleaseOutcome::Released);
    }
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn the_last_waiter_that_leaves_takes_the_mark_with_it() {
    let server = RedisServer::start().await;
    let (cli, claims) = (server.cli().await, Claims::new(&server));
    let [holder, one, other] = [(); 3].map(|()| claims.exclusive());
    assert!(claims.asks(&holder, LONG).await);
    for waits in [&one, &other] {
        assert!(!claims.waits(waits, LONG).await);
    }
    claims.releases(ReleaseRequest::new(one)).await;
    let marked = cli.value("lock:a").await.unwrap();
    assert!(marked.starts_with("queued=1 "), "one still waits: {marked}");
    claims.releases(ReleaseRequest::new(other)).await;
    assert_eq!(cli.value("lock:a").await.as_deref(), Some(holder.value()));
    let left = u64::try_from(cli.pttl("lock:a").await).unwrap();
    assert!((3_000_000..=3_600_000).contains(&left), "{left} ms of its lease");
    assert_eq!(claims.releases(ReleaseRequest::new(holder)).await, ReleaseOutcome::Released);
    assert_nothing_left(&server).await;
}

/// A claim waits for two keys, of which one is held. A reservation keeps the free one from being
/// acquired by a command that knows no queue. A reservation has no holder.
#[tokio::test]
async fn a_free_key_of_a_claim_that_waits_is_reserved_and_held_by_no_process() {
    let server = RedisServer::start().await;
    let (cli, claims) = (server.cli().await, Claims::new(&server));
    let holder = claims.claim(&["b"], Sharing::Exclusive);
    assert!(claims.asks(&holder, LONG).await);
    let both = claims.claim(&["a", "b"], Sharing::Exclusive);
    assert!(!claims.waits(&both, LONG).await);
    assert!(cli.value("lock:a").await.is_some_and(|value| value.starts_with("queued=1 until=0 ")));
    let manager = manager(&server, PATIENT).await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
    let held: Vec<_> = manager.held_locks().await.unwrap();
    assert_eq!(held.iter().map(|lock| lock.key.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(claims.releases(ReleaseRequest::new(holder)).await, ReleaseOutcome::Released);
    assert_eq!(
        cli.held_value("lock:a").await.as_deref(),
        Some(both.value()),
        "it was granted both"
    );
    assert_eq!(claims.releases(ReleaseRequest::new(both)).await, ReleaseOutcome::Released);
    assert_nothing_left(&server).await;
}

/// Shared holders leave the lock while an exclusive claim waits. Whichever leaves last, and whether
/// or not a waiter is served then, a newcomer finds that the key exists.
#[tokio::test]
async fn sharers_that_leave_without_notifying_leave_a_reservation_for_the_waiter() {
    let server = RedisServer::start().await;
    let (cli, claims) = (server.cli().await, Claims::new(&server));
    let [one, other] = [(); 2].map(|()| claims.claim(&["a"], Sharing::Shared));
    for sharer in [&one, &other] {
        assert!(claims.asks(sharer, LONG).await);
    }
    let waits = claims.exclusive();
    assert!(!claims.waits(&waits, LONG).await);
    claims.releases(ReleaseRequest::new(one).without_notification()).await;
    claims.releases(ReleaseRequest::new(other).without_notification()).await;
    assert!(cli.value("lock:a").await.is_some_and(|value| value.starts_with("queued=1 until=0 ")));
    assert!(!claims.asks(&claims.exclusive(), LONG).await, "it overtook a waiter");
    assert!(claims.waits(&waits, LONG).await);
    assert_eq!(claims.releases(ReleaseRequest::new(waits)).await, ReleaseOutcome::Released);
    assert_nothing_left(&server).await;
}

/// Another program compares and deletes what it wrote, so its value is not changed, even if there
/// are waiters.
#[tokio::test]
async fn the_value_of_another_program_is_never_marked() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server, "retry_delay=20ms").await);
    // One with an end and one without; one as long as a token, and one that is like a token alone.
    for (value, ends) in [("5f2b", true), (&"f".repeat(32), true), ("nobody's", false)] {
        let mut set = vec!["SET", "lock:a", value];
        set.extend(if ends { &["PX", "3600000"][..] } else { &[] });
        cli.query::<()>(&set).await;
        let waits = waiter(&cli, &manager).await;
        eventually("it polls again", async || calls(&cli, "evalsha").await > 4).await;
        assert_eq!(cli.value("lock:a").await.as_deref(), Some(value));
        assert_eq!(cli.pttl("lock:a").await > 0, ends);
        assert_eq!(cli.query::<u32>(&["DEL", "lock:a"]).await, 1);
        waits.await.unwrap().release().await.unwrap();
        assert_nothing_left(&server).await;
    }
}

/// A holder that was not notified of the waiter tries a plain delete, which fails; the script then
/// hands off.
#[tokio::test]
async fn a_plain_release_of_a_marked_lock_hands_it_off() {
    let server = RedisServer::start().await;
    let proxy = lockattr_tests::Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), PATIENT);
    let (cli, one) = (server.cli().await, LockManager::connect(url).await.unwrap());
    let other = manager(&server, PATIENT).await;
    let held = one.acquire("a", LockOptions::new()).await.unwrap();
    proxy.swallow_messages(1);
    let waits = waiter(&cli, &other).await;
    eventually("notified", async || proxy.seen("message") == 1).await;
    held.release().await.unwrap();
    assert_eq!(proxy.seen("release"), 2, "a plain command, and then the script");
    let granted = in_time(waits).await.unwrap();
    granted.release().await.unwrap();
    drop((one, other));
    assert_nothing_left(&server).await;
}

/// A shared lock outlives its leases only for its wait queue: otherwise other programs find the key
/// gone when its last lease ends.
#[tokio::test]
async fn a_shared_lock_whose_waiter_left_ends_with_its_lease() {
    let server = RedisServer::start().await;
    let (cli, claims) = (server.cli().await, Claims::new(&server));
    let sharer = claims.claim(&["a"], Sharing::Shared);
    // Shorter than the queue lasts.
    assert!(claims.asks(&sharer, Duration::from_secs(12)).await);
    let waits = claims.exclusive();
    assert!(!claims.waits(&waits, LONG).await);
    let ends = async || cli.query::<f64>(&["PEXPIRETIME", "lock:a"]).await;
    let lease = cli.query::<f64>(&["ZSCORE", "lock:a", sharer.value()]).await;
    let queue = ends().await;
    assert!(queue > lease, "it lasts for its queue");
    claims.releases(ReleaseRequest::new(waits)).await;
    // Later than the lease by what a busy server takes from reading the clock to setting the end.
    assert!(ends().await < queue, "it lasts no longer than its lease");
    claims.releases(ReleaseRequest::new(sharer)).await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_server_out_of_memory_renews_a_lock_with_waiters() {
    let server = RedisServer::start().await;
    let (cli, claims) = (server.cli().await, Claims::new(&server));
    let sharer = claims.claim(&["a"], Sharing::Shared);
    let alone = claims.claim(&["b"], Sharing::Exclusive);
    let waiters = ["a", "b"].map(|key| claims.claim(&[key], Sharing::Exclusive));
    for holder in [&sharer, &alone] {
        assert!(claims.asks(holder, MINUTE).await);
    }
    for waiter in &waiters {
        assert!(!claims.waits(waiter, LONG).await);
    }
    cli.query::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    // The sharer's key lives longer than this renewal asks for: one that writes nothing first is refused.
    let renewals = [(&sharer, MINUTE / 2), (&alone, LONG)];
    let renewals = renewals.map(|(claim, ttl)| RenewRequest::new(claim.clone(), ttl));
    for outcome in claims.store.renew(&renewals).await {
        assert_eq!(outcome.unwrap(), RenewOutcome::Renewed);
    }
    assert!(cli.pttl("lock:b").await > 3_000_000);
    cli.query::<()>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    for claim in waiters.into_iter().chain([sharer, alone]) {
        claims.releases(ReleaseRequest::new(claim)).await;
    }
    assert_nothing_left(&server).await;
}

/// A request that its caller gave up may arrive late, when the lease has already been extended.
#[tokio::test]
async fn a_request_that_arrives_late_shortens_no_lease() {
    let server = RedisServer::start().await;
    let (cli, claims) = (server.cli().await, Claims::new(&server));
    let renewed = async |claim: &Arc<Claim>| {
        let (claim, ttl) = (claim.clone(), LONG);
        claims.store.renew(&[RenewRequest::new(claim, ttl)]).await.remove(0).unwrap()
    };
    let alone = claims.exclusive();
    assert!(claims.asks(&alone, MINUTE).await);
    assert_eq!(renewed(&alone).await, RenewOutcome::Renewed);
    assert!(claims.asks(&alone, MINUTE).await, "it already holds it");
    assert!(cli.pttl("lock:a").await > 3_000_000);
    // The same while a claim waits for it.
    let waits = claims.exclusive();
    assert!(!claims.waits(&waits, MINUTE).await);
    assert!(claims.asks(&alone, MINUTE).await);
    let marked = cli.value("lock:a").await.unwrap();
    let until = marked.split("until=").nth(1).and_then(|rest| rest.split(' ').next());
    let until: i64 = until.expect("it is marked").parse().unwrap();
    let now: Vec<i64> = cli.query(&["TIME"]).await;
    assert!(until / 1_000 - now[0] > 3_000, "{marked}");
    for claim in [alone, waits] {
        assert_eq!(claims.releases(ReleaseRequest::new(claim)).await, ReleaseOutcome::Released);
    }
    let shared = claims.claim(&["b"], Sharing::Shared);
    assert!(claims.asks(&shared, MINUTE).await);
    assert_eq!(renewed(&shared).await, RenewOutcome::Renewed);
    assert!(claims.asks(&shared, MINUTE).await);
    assert!(cli.pttl("lock:b").await > 3_000_000);
    assert_eq!(claims.releases(ReleaseRequest::new(shared)).await, ReleaseOutcome::Released);
    assert_nothing_left(&server).await;
}
