//! One suite for every store: what `lockattr::store::Store` promises in its documentation.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    Acquire, Claim, LockKey, MemoryStore, RedisStore, Release, Releasing, Renew, Renewal, Store,
};
use lockattr::{FencingToken, LockManager, LockOptions};
use lockattr_tests::{RedisServer, eventually};
use tokio::task::JoinSet;

type AnyStore = Arc<dyn Store>;

const TTL: Duration = Duration::from_secs(20);
const LONGER: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(40);

/// Runs every test of the suite against the store that `$open` makes; what comes with it keeps its
/// server alive.
macro_rules! store_contract {
    ($name:ident, $open:expr) => {
        store_contract!($name, $open, [
            a_free_lock_is_acquired,
            a_held_lock_says_by_whom,
            the_same_claim_is_granted_again,
            a_released_lock_is_free,
            a_stale_release_frees_nobody,
            a_second_release_is_not_held,
            a_lease_ends_by_itself,
            a_renewed_lease_runs_on,
            a_renewal_never_shortens,
            a_renewal_resurrects_nothing,
            batches_answer_one_by_one_in_order,
            an_empty_batch_has_no_answers,
            fencing_tokens_grow_in_order,
            odd_keys_are_kept_apart,
            one_of_many_gets_it,
            a_counter_under_the_lock_loses_nothing,
        ]);
    };
    ($name:ident, $open:expr, [$($test:ident),* $(,)?]) => {
        mod $name {
            use super::*;
            $(
                #[tokio::test]
                async fn $test() {
                    let (store, _server) = $open.await;
                    super::$test(store).await;
                }
            )*
        }
    };
}

store_contract!(memory, async { (Arc::new(MemoryStore::new()) as AnyStore, ()) });
store_contract!(redis, async {
    let server = RedisServer::start().await;
    let store = RedisStore::open(&server.url()).expect("a good URL");
    (Arc::new(store) as AnyStore, server)
});

async fn a_free_lock_is_acquired(store: AnyStore) {
    let claim = claim("free");
    assert_eq!(store.holder(claim.key()).await.unwrap(), None);
    acquired(&store, &claim, TTL).await;
    let holder = store.holder(claim.key()).await.unwrap().expect("held");
    assert!(holder.remaining.is_some_and(|left| left <= TTL && left > TTL / 2));
}

async fn a_held_lock_says_by_whom(store: AnyStore) {
    acquired(&store, &claim("held"), TTL).await;
    let Acquire::Held { holder: Some(holder), .. } =
        store.acquire(&claim("held"), TTL).await.unwrap()
    else {
        panic!("granted twice, or a holder without a name");
    };
    assert_eq!(holder.service.as_deref(), Some("a contract"));
    assert_eq!(holder.host.as_deref(), Some("here"));
    assert_eq!(holder.process, Some(7));
    assert_eq!(holder.function.as_deref(), Some("suite::test"));
    assert!(holder.since.is_some() && holder.remaining.is_some());
}

async fn the_same_claim_is_granted_again(store: AnyStore) {
    let claim = claim("again");
    let first = acquired(&store, &claim, SHORT).await;
    let second = acquired(&store, &claim, TTL).await;
    assert!(second > first);
    let holder = store.holder(claim.key()).await.unwrap().expect("held");
    assert!(holder.remaining.is_some_and(|left| left > SHORT), "the lease starts anew");
}

async fn a_released_lock_is_free(store: AnyStore) {
    let first = claim("released");
    acquired(&store, &first, TTL).await;
    assert_eq!(release(&store, &first).await, Release::Released);
    assert_eq!(store.holder(first.key()).await.unwrap(), None);
    acquired(&store, &claim("released"), TTL).await;
}

async fn a_stale_release_frees_nobody(store: AnyStore) {
    let (first, second) = (claim("stale"), claim("stale"));
    acquired(&store, &first, TTL).await;
    release(&store, &first).await;
    acquired(&store, &second, TTL).await;
    assert_eq!(release(&store, &first).await, Release::NotHeld);
    assert_eq!(renew(&store, &second, TTL).await, Renew::Renewed, "the successor was freed");
}

async fn a_second_release_is_not_held(store: AnyStore) {
    let claim = claim("twice");
    acquired(&store, &claim, TTL).await;
    assert_eq!(release(&store, &claim).await, Release::Released);
    assert_eq!(release(&store, &claim).await, Release::NotHeld);
}

async fn a_lease_ends_by_itself(store: AnyStore) {
    let (first, second) = (claim("ends"), claim("ends"));
    acquired(&store, &first, SHORT).await;
    eventually(TTL, "the lease ends", async || {
        matches!(store.acquire(&second, TTL).await, Ok(Acquire::Acquired { .. }))
    })
    .await;
    assert_eq!(release(&store, &first).await, Release::NotHeld);
}

async fn a_renewed_lease_runs_on(store: AnyStore) {
    let claim = claim("renewed");
    acquired(&store, &claim, TTL).await;
    assert_eq!(renew(&store, &claim, LONGER).await, Renew::Renewed);
    let holder = store.holder(claim.key()).await.unwrap().expect("held");
    assert!(holder.remaining.is_some_and(|left| left > TTL));
}

async fn a_renewal_never_shortens(store: AnyStore) {
    let claim = claim("shorter");
    acquired(&store, &claim, LONGER).await;
    assert_eq!(renew(&store, &claim, SHORT).await, Renew::Renewed);
    let holder = store.holder(claim.key()).await.unwrap().expect("held");
    assert!(holder.remaining.is_some_and(|left| left > TTL));
}

async fn a_renewal_resurrects_nothing(store: AnyStore) {
    let (first, second) = (claim("dead"), claim("dead"));
    assert_eq!(renew(&store, &first, TTL).await, Renew::NotHeld, "never acquired");
    acquired(&store, &first, TTL).await;
    release(&store, &first).await;
    assert_eq!(renew(&store, &first, TTL).await, Renew::NotHeld, "released");
    assert_eq!(store.holder(first.key()).await.unwrap(), None);
    acquired(&store, &second, TTL).await;
    assert_eq!(renew(&store, &first, TTL).await, Renew::NotHeld, "another's");
}

async fn batches_answer_one_by_one_in_order(store: AnyStore) {
    // More than a store would put into one command, every third one not ours.
    let claims: Vec<_> = (0..350).map(|n| claim(&format!("batch:{n}"))).collect();
    for (n, claim) in claims.iter().enumerate() {
        if n % 3 != 0 {
            acquired(&store, claim, TTL).await;
        }
    }
    let renewals = claims.iter().map(|claim| Renewal::new(claim.clone(), LONGER));
    let renewed = store.renew(&renewals.collect::<Vec<_>>()).await;
    let releases: Vec<_> = claims.iter().cloned().map(Releasing::new).collect();
    let released = store.release(&releases).await;
    assert_eq!((renewed.len(), released.len()), (350, 350));
    for n in 0..350 {
        let ours = n % 3 != 0;
        assert_eq!(*renewed[n].as_ref().unwrap() == Renew::Renewed, ours, "renewal {n}");
        assert_eq!(*released[n].as_ref().unwrap() == Release::Released, ours, "release {n}");
    }
}

async fn an_empty_batch_has_no_answers(store: AnyStore) {
    assert!(store.renew(&[]).await.is_empty());
    assert!(store.release(&[]).await.is_empty());
}

async fn fencing_tokens_grow_in_order(store: AnyStore) {
    let mut last = None;
    for _ in 0..100 {
        let claim = claim("fenced");
        let token = acquired(&store, &claim, TTL).await;
        assert!(Some(token) > last, "{token:?} after {last:?}");
        assert!(i64::from(token) > 0);
        last = Some(token);
        release(&store, &claim).await;
    }
}

async fn odd_keys_are_kept_apart(store: AnyStore) {
    let keys = ["a", "A", "a ", " a", "a\0", "a\n", "ä", "a\u{308}", "{a}", "a:b", "%", "💰", "*"];
    let mut tokens = HashSet::new();
    for key in keys {
        tokens.insert(acquired(&store, &claim(key), TTL).await);
    }
    assert_eq!(tokens.len(), keys.len());
}

async fn one_of_many_gets_it(store: AnyStore) {
    let mut askers = JoinSet::new();
    for _ in 0..32 {
        let store = store.clone();
        askers.spawn(async move { store.acquire(&claim("race"), TTL).await.unwrap() });
    }
    let answers = askers.join_all().await;
    let granted = answers.iter().filter(|answer| matches!(answer, Acquire::Acquired { .. }));
    assert_eq!(granted.count(), 1);
}

/// The oldest test of a lock: read, yield, write.
async fn a_counter_under_the_lock_loses_nothing(store: AnyStore) {
    let manager = LockManager::builder()
        .store(store)
        .wait(LONGER)
        .retry_delay(Duration::from_millis(5))
        .build()
        .unwrap();
    let counter = Arc::new(std::sync::Mutex::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (manager, counter) = (manager.clone(), counter.clone());
        tasks.spawn(async move {
            for _ in 0..10 {
                let counter = counter.clone();
                let add = async move |_: &_| {
                    let seen = *counter.lock().unwrap();
                    tokio::task::yield_now().await;
                    *counter.lock().unwrap() = seen + 1;
                };
                manager.with_lock("counter", LockOptions::new(), add).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(*counter.lock().unwrap(), 80);
    assert_eq!(manager.holder("counter").await.unwrap(), None);
}

fn claim(key: &str) -> Arc<Claim> {
    let key = LockKey::new("contract:", key).expect("a good key");
    let label = "since=1700000000000 service=a%20contract host=here pid=7 function=suite::test";
    Arc::new(Claim::new(key, label))
}

async fn acquired(store: &AnyStore, claim: &Arc<Claim>, ttl: Duration) -> FencingToken {
    match store.acquire(claim, ttl).await {
        Ok(Acquire::Acquired { fencing, .. }) => fencing,
        other => panic!("{claim:?} was not granted: {other:?}"),
    }
}

async fn renew(store: &AnyStore, claim: &Arc<Claim>, ttl: Duration) -> Renew {
    store.renew(&[Renewal::new(claim.clone(), ttl)]).await.remove(0).unwrap()
}

async fn release(store: &AnyStore, claim: &Arc<Claim>) -> Release {
    store.release(&[Releasing::new(claim.clone())]).await.remove(0).unwrap()
}
