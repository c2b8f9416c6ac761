//! Fuzzes durations: URLs and the attribute parse them alike, a parsed duration survives printing,
//! and each error has a message.

#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use lockattr::store::fuzzing::duration;
use lockattr_fuzz_attribute::fuzzing::duration as attribute_duration;

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

fuzz_target!(|text: &str| {
    let (in_url, in_attribute) = (duration(text), attribute_duration(text));
    match (&in_url, &in_attribute) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one, other);
            // The sum with the clock must not overflow.
            let _later = Instant::now() + *one * 2;
            let printed = format!("{}", print(*one));
            assert_eq!(duration(&printed).ok(), Some(*one), "{printed}");
        }
        (Err(error), Ok(long)) => assert!(*long > CENTURY, "{error}"),
        (Err(one), Err(other)) => assert!(!one.to_string().is_empty() && !other.is_empty()),
        (Ok(_), Err(error)) => panic!("only the attribute rejects {text:?}: {error}"),
    }
});

/// Prints seconds and whole nanoseconds, which need no rounding.
fn print(duration: Duration) -> String {
    format!("{}s {}ns", duration.as_secs(), duration.subsec_nanos())
}
