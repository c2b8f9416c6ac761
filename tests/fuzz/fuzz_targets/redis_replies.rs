//! Fuzzes replies of Redis with any bytes: only a positive integer is a grant, only a `1` at the
//! position of a claim means held, and only a `0` means lost.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lockattr::store::fuzzing::redis as store;
use lockattr::store::{AcquireOutcome, ReleaseOutcome};
use redis::Value;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(reply) = redis::parse_redis_value(bytes) else { return Corpus::Reject };
    for queued in [false, true] {
        match store::acquired(reply.clone(), queued) {
            Some(AcquireOutcome::Acquired { fencing, contended }) => {
                let Value::Int(encoded) = reply else { panic!("{reply:?} is not a grant") };
                let counter = u64::try_from(encoded / 2).expect("a positive counter");
                assert!(
                    counter > 0 && fencing.get() == counter << 10,
                    "{encoded} became {fencing}"
                );
                assert_eq!(contended, encoded % 2 == 1);
            }
            Some(AcquireOutcome::Held { holder, queued: again }) => {
                assert!(matches!(&reply, Value::Array(parts) if parts.len() == 3), "{reply:?}");
                assert_eq!(again.is_some(), queued);
                // No claim sleeps longer than the recheck interval that covers lost messages.
                assert!(again.is_none_or(|again| again.as_secs() <= 15));
                // The holder is printed in an error.
                let _shown = holder.map(|holder| format!("{holder} {holder:?}"));
            }
            None => {}
        }
    }
    let shown = store::held_by(reply.clone()).map(|holder| holder.to_string());
    assert!(shown.is_none_or(|shown| !shown.is_empty()));
    let _map = store::is_a_map(reply.clone());
    if let Some(released) = store::released(&reply) {
        assert_eq!((released, &reply), (ReleaseOutcome::Released, &Value::Int(1)));
    }
    if let Value::Array(parts) = &reply
        && let [set, incremented, ..] = &parts[..]
        && let Some(counter) = store::taken(set, incremented, 7)
    {
        assert_eq!((set, incremented), (&Value::Okay, &Value::Int(counter.cast_signed())));
        assert!(counter > 7, "{counter}");
    }
    for claims in 0..4 {
        let Some(held) = store::held(&reply, claims) else { continue };
        let expected: String = held.iter().map(|held| if *held { '1' } else { '0' }).collect();
        assert_eq!((&reply, held.len()), (&Value::BulkString(expected.into()), claims));
    }
    Corpus::Keep
});
