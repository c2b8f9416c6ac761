//! The span `lock`: its fields, its contents, and its end.

use lockattr::{Error, LockManager, LockOptions, distributed_lock};
use tokio::time::sleep;
use tracing::{Instrument, Level, info_span};

use super::trace::{Seen, traced};
use super::{MINUTE, SECOND, memory, sell};

#[track_caller]
fn only(mut found: Vec<Seen>) -> Seen {
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn seconds(seen: &Seen, field: &str) -> f64 {
    seen.fields[field].parse().unwrap()
}

/// Red without: any field that is named here. Each is a promise.
#[tokio::test(start_paused = true)]
async fn a_lock_has_a_span_with_the_promised_fields_inside_its_callers_span() {
    let (trace, _subscribed) = traced(Level::INFO);
    let manager = memory();
    sell(&manager, 7, SECOND * 3).instrument(info_span!("request")).await.unwrap();
    let lock = only(trace.spans("lock"));
    assert_eq!((lock.target, lock.level), ("lockattr", Level::INFO));
    assert_eq!(lock.inside, ["request"]);
    let names: Vec<_> = lock.fields.keys().copied().collect();
    let promised = [
        "lockattr.fencing_token",
        "lockattr.held",
        "lockattr.key",
        "lockattr.manager",
        "lockattr.mode",
        "lockattr.outcome",
        "lockattr.store",
        "lockattr.template",
        "lockattr.waited",
        "otel.name",
    ];
    assert_eq!(names, promised);
    let text = |name: &str| lock.fields[name].as_str();
    assert_eq!((text("lockattr.key"), text("lockattr.template")), ("product:7", "product:<id>"));
    assert_eq!((text("lockattr.mode"), text("lockattr.outcome")), ("exclusive", "released"));
    assert_eq!((text("lockattr.manager"), text("lockattr.store")), ("default", "memory"));
    assert_eq!(text("otel.name"), "lock product:<id>");
    assert!(text("lockattr.fencing_token").parse::<u64>().unwrap() > 0);
    assert!(
        seconds(&lock, "lockattr.waited") < 0.01
            && (seconds(&lock, "lockattr.held") - 3.0).abs() < 0.01
    );
    assert!(lock.over, "{lock:#?}");
}

/// Red without: entering the span around each poll of the body.
#[tokio::test(start_paused = true)]
async fn events_of_a_body_are_inside_its_lock_span_and_no_others_are() {
    let (trace, _subscribed) = traced(Level::INFO);
    let manager = memory();
    let beside = async {
        for _ in 0..4 {
            sleep(SECOND / 2).await;
            tracing::info!("beside");
        }
    };
    let (sold, ()) = tokio::join!(sell(&manager, 7, SECOND), beside);
    sold.unwrap();
    tracing::info!("after");
    assert_eq!(only(trace.events("sold")).inside, ["lock"]);
    for event in trace.events("beside").iter().chain(&trace.events("after")) {
        assert_eq!(event.inside, [""; 0], "{event:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_inside_another_has_a_nested_span_and_a_reentrant_call_has_none() {
    #[distributed_lock(key = "order:<id>", manager = manager)]
    async fn order(manager: &LockManager, id: u64) -> Result<(), Error> {
        let once = sell(manager, id, SECOND);
        manager.with_lock(format!("product:{id}"), LockOptions::new(), async |_| once.await).await?
    }
    let (trace, _subscribed) = traced(Level::INFO);
    order(&memory(), 7).await.unwrap();
    let locks = trace.spans("lock");
    let keys: Vec<_> = locks.iter().map(|lock| lock.fields["lockattr.key"].as_str()).collect();
    assert_eq!(keys, ["order:7", "product:7"]);
    assert_eq!(locks[1].inside, ["lock"]);
    assert_eq!(locks[1].fields["lockattr.template"], "unnamed");
    assert_eq!(only(trace.events("sold")).inside, ["lock", "lock"]);
    assert!(locks.iter().all(|lock| lock.over), "{locks:#?}");
}

/// Red without: `otel.status_code`, set by `LostReason` and not by the caller's error.
#[tokio::test(start_paused = true)]
async fn a_lost_lock_sets_the_error_status_of_its_span() {
    let (trace, _subscribed) = traced(Level::INFO);
    let fixed = LockOptions::new().renew(false).ttl(SECOND).template("job");
    let lost = memory().with_lock("job", fixed, async |_| sleep(MINUTE).await).await;
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
    let lock = only(trace.spans("lock"));
    assert_eq!(lock.fields["lockattr.outcome"], "expired");
    assert_eq!(lock.fields["error.type"], "lost.expired");
    assert_eq!(lock.fields["otel.status_code"], "ERROR");
    assert!(lock.over, "{lock:#?}");
}

/// Red without: ending the span with its guard. Three holds of one lease have three spans.
#[tokio::test(start_paused = true)]
async fn spans_end_with_their_holds_when_a_lock_is_handed_off() {
    let (trace, _subscribed) = traced(Level::INFO);
    let manager = LockManager::builder().url("memory://").linger(MINUTE).build().unwrap();
    let third = SECOND / 4;
    let sold = tokio::join!(sell(&manager, 7, third), sell(&manager, 7, third));
    sold.0.and(sold.1).unwrap();
    sell(&manager, 7, third).await.unwrap();
    let locks = trace.spans("lock");
    assert_eq!(locks.len(), 3);
    let mut tokens: Vec<u64> =
        locks.iter().map(|lock| lock.fields["lockattr.fencing_token"].parse().unwrap()).collect();
    assert!(tokens.is_sorted(), "{locks:#?}");
    tokens.dedup();
    assert_eq!(tokens.len(), 3, "{locks:#?}");
    for lock in locks {
        assert!(lock.over && (seconds(&lock, "lockattr.held") - 0.25).abs() < 0.01, "{lock:#?}");
    }
}
