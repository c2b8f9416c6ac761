//! Fuzzes the rows of PostgreSQL and MySQL with any values: only a positive number is a grant.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use lockattr::store::AcquireOutcome;
use lockattr::store::fuzzing::{mysql, postgres};

#[derive(Arbitrary, Debug)]
struct Row<'a> {
    number: Option<i64>,
    contended: Option<bool>,
    value: Option<&'a [u8]>,
    remains: Option<i64>,
    clock: Option<i64>,
    unsigned: Option<u64>,
    queued: bool,
}

fuzz_target!(|row: Row<'_>| {
    let Row { number, contended, value, remains, clock, unsigned, queued } = row;
    let answer = postgres::acquired(number, contended, value, remains, clock, queued);
    check(answer, number.and_then(|number| u64::try_from(number).ok()), number.is_some(), queued);

    let waits = contended.map(i64::from);
    let columns =
        (unsigned, waits, value.map(<[u8]>::to_vec), remains, clock.map(i64::cast_unsigned));
    check(mysql::acquired(columns, queued), unsigned, unsigned.is_some(), queued);

    if let Some(held) = mysql::held(value.unwrap_or_default()) {
        let written: Vec<_> = held.iter().map(|held| if *held { b'1' } else { b'0' }).collect();
        assert_eq!(written, value.unwrap_or_default());
    }
});

fn check(answer: Option<AcquireOutcome>, number: Option<u64>, numbered: bool, queued: bool) {
    match answer {
        Some(AcquireOutcome::Acquired { fencing, .. }) => {
            let number = number.expect("a grant without a number");
            assert!(number > 0 && fencing.get() == number << 10, "{number} became {fencing}");
        }
        Some(AcquireOutcome::Held { holder, queued: again }) => {
            assert!(!numbered, "a number that is no refusal");
            assert_eq!(again.is_some(), queued);
            assert!(again.is_none_or(|again| again.as_secs() <= 15));
            let _shown = holder.map(|holder| format!("{holder} {holder:?}"));
        }
        None => {}
    }
}
