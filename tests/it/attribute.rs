//! The behavior of an annotated function, as its caller sees it.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, distributed_lock};
use lockattr_tests::{capture_events, eventually};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::support::broken_manager;

const SECOND: Duration = Duration::from_secs(1);

fn manager() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

struct Customer {
    id: u64,
    name: String,
}

impl Customer {
    fn initials(&self) -> String {
        self.name.split(' ').filter_map(|word| word.chars().next()).collect()
    }
}

#[distributed_lock(key = "c:<customer.id>/<customer.initials()>/<items[0]>-<<x>{<region>}")]
async fn rich(
    manager: &LockManager,
    customer: Customer,
    items: &[&str],
    region: impl Display,
) -> Result<bool, Error> {
    // The key is rendered before the body, by reference, so the body can still move the arguments.
    let Customer { name, .. } = customer;
    assert_eq!((name.as_str(), region.to_string()), ("Ada King", "eu:west".into()));
    Ok(manager.holder("c:7/AK/a/b-<x>{eu%3Awest}").await?.is_some() && items.len() == 2)
}

#[tokio::test]
async fn placeholders_are_expressions_and_their_values_are_escaped() {
    let manager = manager();
    let customer = Customer { id: 7, name: "Ada King".into() };
    // `/` ends the first two placeholders, so the third need not escape it.
    assert!(manager.scope(rich(&manager, customer, &["a/b", "c"], "eu:west")).await.unwrap());
}

#[distributed_lock(key = format_args!("taken:as-is:{}", id))]
async fn as_is(manager: &LockManager, id: &str) -> Result<bool, Error> {
    Ok(manager.holder(format!("taken:as-is:{id}")).await?.is_some())
}

#[tokio::test]
async fn an_expression_key_is_used_verbatim() {
    let manager = manager();
    assert!(manager.scope(as_is(&manager, "a:b{c}%")).await.unwrap());
}

#[distributed_lock(key = "sale:<id>", wait = "200ms", retry_delay = "10ms")]
async fn sell(id: u64, inside: &AtomicUsize, ran: &AtomicUsize) -> Result<(), Error> {
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two bodies at once");
    ran.fetch_add(1, Ordering::SeqCst);
    sleep(Duration::from_millis(120)).await;
    inside.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn two_of_eight_callers_get_a_permit_and_the_others_learn_the_holder() {
    let manager = manager();
    let (inside, ran) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let (manager, inside, ran) = (manager.clone(), inside.clone(), ran.clone());
        callers.spawn(async move { manager.scope(sell(42, &inside, &ran)).await });
    }
    let outcomes = callers.join_all().await;
    let refused: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert_eq!(refused.len(), 6, "{refused:?}");
    assert_eq!(ran.load(Ordering::SeqCst), 2, "a refused body ran");
    for error in refused {
        let Error::Contended { key, attempts, holder: Some(holder), .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(key, "sale:42");
        assert!(*attempts >= 1);
        assert!(holder.function.as_deref().unwrap().ends_with("attribute::sell"), "{holder}");
        assert!(error.to_string().contains("attribute::sell"), "{error}");
    }
    assert_eq!(manager.holder("sale:42").await.unwrap(), None);
}

#[distributed_lock(key = "job", wait = "0s", on_busy = skip)]
async fn skip_unit(ran: &AtomicUsize) {
    ran.fetch_add(1, Ordering::SeqCst);
}

#[distributed_lock(key = "job", wait = "0s", on_busy = skip)]
async fn skip_option() -> Option<u32> {
    Some(1)
}

#[distributed_lock(key = "job", wait = "0s", on_busy = skip)]
async fn skip_result() -> Result<Option<u32>, Error> {
    Ok(Some(1))
}

#[distributed_lock(key = "job", wait = "0s", on_busy = return(Ok(name)))]
async fn return_other(name: String) -> Result<String, Error> {
    Ok(format!("ran for {name}"))
}

#[tokio::test]
async fn a_busy_call_is_skipped_or_returns_its_other_value() {
    let manager = manager();
    let ran = AtomicUsize::new(0);
    let calls = async || {
        skip_unit(&ran).await;
        (skip_option().await, skip_result().await.unwrap(), return_other("Ada".into()).await)
    };
    let (option, result, other) = manager.scope(calls()).await;
    assert_eq!((option, result, ran.load(Ordering::SeqCst)), (Some(1), Some(1), 1));
    assert_eq!(other.unwrap(), "ran for Ada");

    let _held = manager.acquire("job", LockOptions::new()).await.unwrap();
    let (option, result, other) = manager.scope(calls()).await;
    assert_eq!((option, result, ran.load(Ordering::SeqCst)), (None, None, 1));
    assert_eq!(other.unwrap(), "Ada", "the parameters are still there");
}

#[tokio::test]
async fn a_skip_for_another_reason_than_contention_is_an_error_event() {
    let events = capture_events();
    let ran = AtomicUsize::new(0);
    let broken = broken_manager();
    broken.scope(skip_unit(&ran)).await;
    assert_eq!(broken.scope(skip_option()).await, None);
    assert!(matches!(broken.scope(skip_result()).await, Err(Error::Store { .. })));
    assert_eq!(ran.load(Ordering::SeqCst), 0, "a body without its lock");
    assert_eq!(events.count("skipped, because the lock was refused"), 2);
}

/// Skips if `job` is busy. The call in its body needs `cache`.
#[distributed_lock(key = "job", wait = "0s", on_busy = skip)]
async fn skip_around_another() -> Result<Option<u32>, Error> {
    efficient().await.map(Some)
}

/// Red without: an `on_busy` that applies only to the call's own acquisition, and not to what the
/// body returns (alturkovic's `throwing = false`, locksmith's interrupt).
#[tokio::test]
async fn a_lock_error_inside_the_body_is_returned_and_not_skipped() {
    let manager = manager();
    let _held = manager.acquire("cache", LockOptions::new()).await.unwrap();
    let refused = manager.scope(skip_around_another()).await;
    let Err(Error::Contended { key, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(key, "cache");
    assert_eq!(manager.holder("job").await.unwrap(), None, "released");
}

#[distributed_lock(key = "cache", wait = "0s", on_unavailable = run_unlocked)]
async fn efficient() -> Result<u32, Error> {
    Ok(5)
}

#[tokio::test]
async fn run_unlocked_runs_only_if_the_store_is_unavailable_and_logs_it() {
    let events = capture_events();
    assert_eq!(broken_manager().scope(efficient()).await.unwrap(), 5);
    assert_eq!(events.count("running without the lock"), 1);

    let manager = manager();
    let _held = manager.acquire("cache", LockOptions::new()).await.unwrap();
    assert!(matches!(manager.scope(efficient()).await, Err(Error::Contended { .. })));
}

#[distributed_lock(key = "maybe", when = quantity > 0)]
async fn when_any(quantity: u32) -> Result<Option<u32>, Error> {
    Ok(lockattr::current().map(|lease| lease.depth()))
}

#[tokio::test]
async fn when_false_runs_without_the_lock_and_sends_no_request() {
    assert_eq!(manager().scope(when_any(1)).await.unwrap(), Some(1));
    assert_eq!(when_any(0).await.unwrap(), None, "not even a manager is needed");
}

#[distributed_lock(key = "k")]
async fn plain() -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(key = "k", manager = "attribute-test")]
async fn named() -> Result<(), Error> {
    Ok(())
}

struct Shop {
    manager: LockManager,
    name: &'static str,
}

impl Shop {
    #[distributed_lock(key = "<self.name>", manager = &self.manager, lease = held)]
    async fn own_manager(&mut self) -> Result<u64, Error> {
        self.name = "changed by the body";
        assert_eq!(held.key(), "corner shop");
        Ok(held.fencing_token().into())
    }

    #[distributed_lock(key = "<self.name>", manager = &self.manager)]
    async fn by_arc(self: Arc<Self>) -> Result<usize, Error> {
        Ok(Arc::strong_count(&self))
    }
}

#[tokio::test]
async fn the_manager_is_the_default_a_named_one_or_an_expression() {
    assert!(matches!(plain().await, Err(Error::NoManager)));
    let error = named().await.unwrap_err();
    assert!(matches!(&error, Error::NoManagerNamed { name } if name == "attribute-test"));
    assert!(error.to_string().contains("install_as(\"attribute-test\")"), "{error}");

    let manager = manager();
    manager.install_as("attribute-test").unwrap();
    named().await.unwrap();
    let taken = manager.install_as("attribute-test").unwrap_err();
    assert!(matches!(taken, Error::InvalidOptions(_)));

    let mut shop = Shop { manager, name: "corner shop" };
    assert!(shop.own_manager().await.unwrap() > 0);
    assert_eq!(shop.name, "changed by the body");
    assert_eq!(Arc::new(shop).by_arc().await.unwrap(), 1);
}

#[distributed_lock(key = "bad", ttl = ttl)]
async fn any_ttl(ttl: Duration) -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(key = "<part>")]
async fn any_key(part: &str) -> Result<(), Error> {
    Ok(())
}

struct Unprintable;

impl Display for Unprintable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Err(std::fmt::Error)
    }
}

#[distributed_lock(key = "x:<part>")]
async fn unprintable_key(part: Unprintable) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn invalid_values_at_run_time_are_refused_with_a_message() {
    let test = async {
        for ttl in [Duration::ZERO, Duration::from_millis(9), 31 * 24 * 3600 * SECOND] {
            let error = any_ttl(ttl).await.unwrap_err();
            assert!(matches!(error, Error::InvalidOptions(_)), "{error:?}");
        }
        any_ttl(Duration::from_millis(10)).await.unwrap();
        for part in [String::new(), "k".repeat(1025), ":".repeat(342)] {
            let error = any_key(&part).await.unwrap_err();
            assert!(matches!(error, Error::InvalidKey(_)), "{error:?}");
        }
        any_key(&"k".repeat(1024)).await.unwrap();
        assert!(matches!(unprintable_key(Unprintable).await, Err(Error::InvalidKey(_))));
    };
    manager().scope(test).await;
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

#[distributed_lock(key = "way-out")]
async fn way_out(how: &str) -> Result<u32, AnyError> {
    if how == "early" {
        return Ok(2);
    }
    match how {
        "value" => Ok(1),
        "question mark" => {
            let number: u32 = "x".parse()?;
            Ok(number)
        }
        "panic" => panic!("a bug in the body"),
        _ => std::future::pending().await,
    }
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_released_on_every_exit_path() {
    let manager = manager();
    let free = async || manager.holder("way-out").await.unwrap().is_none();
    for (how, expected) in [("value", Some(1)), ("early", Some(2)), ("question mark", None)] {
        assert_eq!(manager.scope(way_out(how)).await.ok(), expected);
        assert!(free().await, "after {how}");
    }
    let panicking = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.scope(way_out("panic")).await })
    };
    let panic = panicking.await.unwrap_err().into_panic();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "a bug in the body");
    eventually("freed after a panic", free).await;

    let stuck = tokio::time::timeout(SECOND, manager.scope(way_out("never"))).await;
    assert!(stuck.is_err());
    eventually("freed after a cancelled call", free).await;
}
