//! Without a subscriber, no span and no key text is made.

use tracing::subscriber::{NoSubscriber, with_default};

use super::*;
use crate::LockOptions;
use crate::lock::settings::Settings;

/// Red without: either check of `is_enabled`.
#[test]
fn without_a_subscriber_no_span_is_made_and_no_key_is_printed() {
    let options =
        LockOptions::new().template("product:<id>").resolve(&Settings::default()).unwrap();
    let keys = [LockKey::new("lock:", "product:42").unwrap()];
    let wait = with_default(NoSubscriber::new(), || {
        let telemetry = Telemetry::new("memory".into());
        AcquireObservation::begin(&options, &keys, &Recorder::default(), &telemetry)
    });
    assert_eq!(wait.observed.is_some(), metrics::ENABLED);
    if let Some(observed) = &wait.observed {
        assert!(observed.span.is_none());
        assert_eq!(observed.key.capacity(), 0);
    }
}
