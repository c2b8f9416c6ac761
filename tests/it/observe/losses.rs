//! The warnings about lost leases: one for each, and a bounded number in an outage.

use lockattr::{LockManager, LockOptions, Release};
use lockattr_tests::{Event, Events, capture_events, force_release};
use tokio::time::sleep;
use tracing::Level;

use super::{MINUTE, SECOND, memory};
use crate::support::{Fate, Scripted};

/// How many losses of ten seconds have a line of their own: a number that docs/observability.md names.
const LINES: usize = 100;

fn fixed() -> LockOptions {
    LockOptions::new().template("job:<id>").ttl(SECOND).renew(false)
}

#[track_caller]
fn only(events: &Events) -> Event {
    let mut all = events.all();
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

#[track_caller]
fn assert_says(event: &Event, parts: &[&str]) {
    assert_eq!(event.level, Level::WARN);
    for part in parts {
        assert!(event.text.contains(part), "no {part} in {}", event.text);
    }
}

/// The holder neither looks at its lease nor releases it: a guard that is leaked.
///
/// Red without: `report_lost` in `Watchdog::end`.
#[tokio::test(start_paused = true)]
async fn a_lease_that_expires_is_a_warning_with_its_key_and_template() {
    let (events, manager) = (capture_events(), memory());
    std::mem::forget(manager.acquire("job:7", fixed()).await.unwrap());
    sleep(MINUTE).await;
    let event = only(&events);
    assert_says(&event, &["lock lost: its lease expired before its holder released it"]);
    assert_says(&event, &[r#"lockattr.key="job:7""#, r#"lockattr.template="job:<id>""#]);
    assert_says(&event, &[r#"lockattr.outcome="expired""#, r#"error.type="lost.expired""#]);
    assert_says(&event, &[r#"lockattr.manager="default""#, r#"lockattr.store="memory""#]);
    assert!(event.text.contains("lockattr.fencing_token="), "{event:?}");
}

/// There is one event, also if the holder notices the loss before the watchdog does.
///
/// Red without: `report_loss` in any of the ends of a guard, or `is_first_report`.
#[tokio::test(start_paused = true)]
async fn a_holder_that_notices_the_loss_itself_causes_no_second_warning() {
    let manager = memory();
    for release in [Release::Await, Release::Background] {
        let events = capture_events();
        let late = fixed().release(release);
        let body = async |_: &lockattr::Lease| sleep(MINUTE).await;
        manager.with_lock("job:7", late, body).await.unwrap_err();
        sleep(MINUTE).await;
        assert_says(&only(&events), &["lock lost: its lease expired", "job:7"]);
    }
    let events = capture_events();
    let guard = manager.acquire("job:8", fixed()).await.unwrap();
    sleep(SECOND).await;
    guard.ensure_held().unwrap_err();
    drop(guard);
    sleep(MINUTE).await;
    assert_says(&only(&events), &["lock lost: its lease expired", "job:8"]);
}

#[tokio::test(start_paused = true)]
async fn readers_who_share_a_lease_lose_it_in_one_warning() {
    let (events, manager) = (capture_events(), memory());
    let shared = || fixed().renew(true).mode(lockattr::Mode::Shared);
    let writer = manager.acquire("job:7", fixed().renew(true)).await.unwrap();
    let readers = async {
        let all =
            tokio::join!(manager.acquire("job:7", shared()), manager.acquire("job:7", shared()));
        (all.0.unwrap(), all.1.unwrap())
    };
    let (readers, ()) = tokio::join!(readers, async {
        sleep(SECOND / 10).await;
        writer.release().await.unwrap();
    });
    assert!(force_release(&manager, "job:7").await.unwrap());
    sleep(MINUTE).await;
    drop(readers);
    sleep(MINUTE).await;
    let all = events.all();
    assert!(!all.is_empty() && all.iter().all(|event| event.text.contains("job:<id>")), "{all:#?}");
    assert!(all.len() <= 2, "one for each lease in the store: {all:#?}");
}

/// Red without: `LostReason::ShutDown` in `Reporter::lost`. Each deployment would be a flood.
#[tokio::test(start_paused = true)]
async fn locks_that_a_shutdown_ends_are_no_warnings() {
    let (events, manager) = (capture_events(), memory());
    let held = async {
        manager.with_lock("job:7", fixed().renew(true), async |_| sleep(MINUTE).await).await
    };
    let (ended, ()) = tokio::join!(held, async {
        sleep(SECOND).await;
        manager.shutdown().await;
    });
    ended.unwrap_err();
    assert!(events.is_empty(), "{:#?}", events.all());
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_reaches_max_hold_is_a_warning() {
    let (events, manager) = (capture_events(), memory());
    let capped = LockOptions::new().template("job:<id>").ttl(SECOND).max_hold(SECOND);
    std::mem::forget(manager.acquire("job:7", capped).await.unwrap());
    sleep(MINUTE).await;
    assert_says(
        &only(&events),
        &["lock lost: it was held for `max_hold`", "lost.max_hold", "job:7"],
    );
}

/// Ten thousand leases end in one outage.
///
/// Red without: either limit in `LossLog::admit`; `next_summary` in `Watchdog::due`.
#[tokio::test(start_paused = true)]
async fn an_outage_that_ends_ten_thousand_leases_is_a_hundred_lines_and_a_count() {
    let store = Scripted::new();
    let manager: LockManager = store.manager();
    let mut guards = Vec::new();
    for id in 0..10_000 {
        let options = LockOptions::new().template("job:<id>").ttl(SECOND);
        guards.push(manager.acquire(format!("job:{id}"), options).await.unwrap());
    }
    let events = capture_events();
    store.renewals(&[Fate::Refused]);
    sleep(MINUTE).await;
    let all = events.all();
    assert_eq!(events.count("lock lost: its lease expired"), LINES);
    let sums: Vec<_> = all.iter().filter(|event| event.text.contains("lockattr.count=")).collect();
    assert_eq!(sums.len(), 1, "{sums:#?}");
    assert_says(sums[0], &["locks lost: ", "lockattr.count=9900", r#"lockattr.store="scripted""#]);
    assert_eq!(all.len(), LINES + 1);
    drop(guards);
    sleep(MINUTE).await;
    assert_eq!(events.all().len(), LINES + 1, "the guards have nothing to add");
}
