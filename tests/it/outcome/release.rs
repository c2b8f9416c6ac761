//! A release that fails after the body: the call returns the body's outcome.

use std::time::Duration;

use lockattr::{LockManager, distributed_lock};
use lockattr_tests::{capture_events, eventually};
use tracing::Level;

use super::{End, Failure};
use crate::support::{Fate, Scripted};

#[distributed_lock(key = "job", manager = manager, ttl = "1h")]
async fn awaited(manager: &LockManager, end: End) -> Result<u32, Failure> {
    end.outcome()
}

#[distributed_lock(key = "job", manager = manager, ttl = "1h", release = background)]
async fn in_background(manager: &LockManager, end: End) -> Result<u32, Failure> {
    end.outcome()
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_is_one_warning_that_names_the_key() {
    for fate in [Fate::Refused, Fate::ReplyLost] {
        for end in End::BOTH {
            let events = capture_events();
            let store = Scripted::new();
            let manager = store.manager();
            store.releases(&[fate, fate, Fate::Answered]);
            let outcome = awaited(&manager, end).await;
            assert!(end.is(&outcome), "{outcome:?}");
            let free = async || manager.holder("job").await.unwrap().is_none();
            eventually("released after all", free).await;
            let all = events.all();
            let [event] = all.as_slice() else { panic!("{all:?}") };
            assert_eq!(event.level, Level::WARN);
            assert!(event.text.contains("the release got no answer"), "{}", event.text);
            assert!(event.text.contains("key=\"job\""), "{}", event.text);
        }
    }
}

/// No caller waits for the reply to a background release, so it is reported only if it never comes.
#[tokio::test(start_paused = true)]
async fn a_background_release_without_an_answer_is_retried_without_an_event() {
    for end in End::BOTH {
        let events = capture_events();
        let store = Scripted::new();
        let manager = store.manager();
        store.releases(&[Fate::Refused, Fate::Answered]);
        let outcome = in_background(&manager, end).await;
        assert!(end.is(&outcome), "{outcome:?}");
        let free = async || manager.holder("job").await.unwrap().is_none();
        eventually("released after all", free).await;
        assert!(events.is_empty(), "{:?}", events.all());
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_never_answered_is_logged_when_it_is_given_up() {
    let events = capture_events();
    let store = Scripted::new();
    store.releases(&[Fate::Refused]);
    let outcome = in_background(&store.manager(), End::Failing).await;
    assert!(End::Failing.is(&outcome), "{outcome:?}");
    // The lease ends after an hour.
    tokio::time::sleep(Duration::from_secs(2 * 3_600)).await;
    assert_eq!(events.count("a release got no answer before the lease expired"), 1);
    assert_eq!(events.all().len(), 1, "{:?}", events.all());
}
