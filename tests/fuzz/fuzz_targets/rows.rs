//! Fuzzes the rows of PostgreSQL and MySQL with any values: only a positive number is a grant.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use lockattr::store::AcquireOutcome;
use lockattr::store::fuzzing::{mysql, postgres};

#[derive(Arbitrary, Debug)]
struct Row<'a> {
    counter: Option<i64>,
    contended: Option<bool>,
    value: Option<&'a [u8]>,
    remains: Option<i64>,
    clock: Option<i64>,
    unsigned: Option<u64>,
    queued: bool,
}

fuzz_target!(|row: Row<'_>| {
    let Row { counter, contended, value, remains, clock, unsigned, queued } = row;
    let outcome = postgres::acquired(counter, contended, value, remains, clock, queued);
    check(
        outcome,
        counter.and_then(|counter| u64::try_from(counter).ok()),
        counter.is_some(),
        queued,
    );

    let waits = contended.map(i64::from);
    let columns =
        (unsigned, waits, value.map(<[u8]>::to_vec), remains, clock.map(i64::cast_unsigned));
    check(mysql::acquired(columns, queued), unsigned, unsigned.is_some(), queued);

    if let Some(held) = mysql::held(value.unwrap_or_default()) {
        let expected: Vec<_> = held.iter().map(|held| if *held { b'1' } else { b'0' }).collect();
        assert_eq!(expected, value.unwrap_or_default());
    }
});

fn check(outcome: Option<AcquireOutcome>, counter: Option<u64>, has_counter: bool, queued: bool) {
    match outcome {
        Some(AcquireOutcome::Acquired { fencing, .. }) => {
            let counter = counter.expect("a grant without a counter");
            assert!(counter > 0 && fencing.get() == counter << 10, "{counter} became {fencing}");
        }
        Some(AcquireOutcome::Held { holder, queued: again }) => {
            assert!(!has_counter, "a refusal with a counter");
            assert_eq!(again.is_some(), queued);
            assert!(again.is_none_or(|again| again.as_secs() <= 15));
            let _shown = holder.map(|holder| format!("{holder} {holder:?}"));
        }
        None => {}
    }
}
