//! Any values in the columns that PostgreSQL and MySQL answer with: only a positive number that is one
//! of theirs is a grant.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use lockattr::store::Acquire;
use lockattr::store::fuzzing::{mysql, postgres};

#[derive(Arbitrary, Debug)]
struct Row<'a> {
    number: Option<i64>,
    wanted: Option<bool>,
    value: Option<&'a [u8]>,
    remains: Option<i64>,
    clock: Option<i64>,
    unsigned: Option<u64>,
    in_line: bool,
}

fuzz_target!(|row: Row<'_>| {
    let Row { number, wanted, value, remains, clock, unsigned, in_line } = row;
    let answer = postgres::acquired(number, wanted, value, remains, clock, in_line);
    check(answer, number.and_then(|number| u64::try_from(number).ok()), number.is_some(), in_line);

    let waits = wanted.map(i64::from);
    let columns =
        (unsigned, waits, value.map(<[u8]>::to_vec), remains, clock.map(i64::cast_unsigned));
    check(mysql::acquired(columns, in_line), unsigned, unsigned.is_some(), in_line);

    if let Some(held) = mysql::held(value.unwrap_or_default()) {
        let written: Vec<_> = held.iter().map(|held| if *held { b'1' } else { b'0' }).collect();
        assert_eq!(written, value.unwrap_or_default());
    }
});

fn check(answer: Option<Acquire>, number: Option<u64>, numbered: bool, in_line: bool) {
    match answer {
        Some(Acquire::Acquired { fencing, .. }) => {
            let number = number.expect("a grant without a number");
            assert!(number > 0 && fencing.get() == number << 10, "{number} became {fencing}");
        }
        Some(Acquire::Held { holder, in_line: again }) => {
            assert!(!numbered, "a number that is no refusal");
            assert_eq!(again.is_some(), in_line);
            assert!(again.is_none_or(|again| again.as_secs() <= 15));
            let _shown = holder.map(|holder| format!("{holder} {holder:?}"));
        }
        None => {}
    }
}
