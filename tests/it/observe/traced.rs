//! The events of a lock, and none where no subscriber listens.

use lockattr::{Error, LockOptions};
use tokio::time::timeout;
use tracing::Level;

use super::trace::{Fields, traced};
use super::{SECOND, memory, sell};
use crate::support::broken_manager;

const LOCK: &str = "lockattr";

fn names(fields: &Fields) -> Vec<&'static str> {
    fields.keys().copied().collect()
}

/// Red without: either event, or a field of one.
#[tokio::test(start_paused = true)]
async fn a_lock_logs_when_it_is_acquired_and_when_it_is_released() {
    let (trace, _subscribed) = traced(Level::DEBUG);
    sell(&memory(), 7, SECOND).await.unwrap();
    assert_eq!(trace.messages(LOCK), ["lock acquired", "lock released"]);
    let (acquired, released) =
        (trace.events("lock acquired").remove(0), trace.events("lock released").remove(0));
    assert_eq!(
        (acquired.inside, released.inside),
        (vec!["lock".to_owned()], vec!["lock".to_owned()])
    );
    assert_eq!(
        names(&acquired.fields),
        [
            "lockattr.fencing_token",
            "lockattr.key",
            "lockattr.outcome",
            "lockattr.template",
            "lockattr.waited"
        ]
    );
    assert_eq!(
        names(&released.fields),
        [
            "lockattr.fencing_token",
            "lockattr.held",
            "lockattr.key",
            "lockattr.outcome",
            "lockattr.template"
        ]
    );
    assert_eq!(
        (acquired.level, acquired.fields["lockattr.outcome"].as_str()),
        (Level::DEBUG, "acquired")
    );
    assert_eq!(
        (released.level, released.fields["lockattr.outcome"].as_str()),
        (Level::DEBUG, "released")
    );
    assert_eq!(
        acquired.fields["lockattr.fencing_token"],
        released.fields["lockattr.fencing_token"]
    );
}

/// Red without: `holder` in the event or in the span.
#[tokio::test(start_paused = true)]
async fn the_event_of_a_refused_call_names_the_holder() {
    let (trace, _subscribed) = traced(Level::DEBUG);
    let manager = memory();
    let other = LockOptions::new().function("other::job");
    let held = manager.acquire("product:7", other).await.unwrap();
    let refused = sell(&manager, 7, SECOND).await;
    assert!(matches!(refused, Err(Error::Contended { .. })), "{refused:?}");
    let event = trace.events("lock not acquired").remove(0);
    let span = trace.spans("lock").remove(1);
    for fields in [&event.fields, &span.fields] {
        assert_eq!(fields["lockattr.outcome"], "contended");
        assert_eq!(fields["error.type"], "contended");
        let holder = &fields["lockattr.holder"];
        assert!(holder.starts_with("observed on ") && holder.contains("other::job"), "{holder}");
    }
    assert_eq!(event.inside, ["lock"]);
    assert!(event.fields["error.message"].contains("gave up after"), "{event:#?}");
    assert!(
        span.over && !span.fields.contains_key("otel.status_code"),
        "no error of ours: {span:#?}"
    );
    held.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_an_error_of_the_span_and_a_caller_that_gives_up_is_none() {
    let (trace, _subscribed) = traced(Level::DEBUG);
    sell(&broken_manager(), 7, SECOND).await.unwrap_err();
    let manager = memory();
    let held = manager.acquire("product:7", LockOptions::new()).await.unwrap();
    assert!(timeout(SECOND / 4, sell(&manager, 7, SECOND)).await.is_err());
    held.release().await.unwrap();
    let spans = trace.spans("lock");
    let outcome = |at: usize| spans[at].fields["lockattr.outcome"].as_str();
    let status = |at: usize| spans[at].fields.get("otel.status_code").map(String::as_str);
    assert_eq!((outcome(0), status(0)), ("unavailable", Some("ERROR")));
    assert_eq!((outcome(2), status(2)), ("cancelled", None));
    let class = |at: usize| spans[at].fields.get("error.type").map(String::as_str);
    assert_eq!((class(0), class(2)), (Some("store"), None));
    let outcomes: Vec<_> = trace.events("lock not acquired");
    assert!(outcomes[0].fields["error.message"].contains("away, on purpose"), "{outcomes:#?}");
    assert!(spans.iter().all(|span| span.over), "{spans:#?}");
}

/// Red without: the level of the span, or of an event.
#[tokio::test(start_paused = true)]
async fn a_lock_without_errors_logs_nothing_at_the_level_of_warnings() {
    let (trace, _subscribed) = traced(Level::WARN);
    sell(&memory(), 7, SECOND).await.unwrap();
    assert_eq!(trace.spans("lock").len(), 0);
    assert_eq!(trace.messages(LOCK), [""; 0]);
}

/// Only the span, without events: what a production log at `info` has.
#[tokio::test(start_paused = true)]
async fn at_the_level_of_the_span_its_events_are_silent() {
    let (trace, _subscribed) = traced(Level::INFO);
    sell(&memory(), 7, SECOND).await.unwrap();
    assert_eq!(trace.spans("lock").len(), 1);
    assert_eq!(trace.messages(LOCK), [""; 0]);
}
