//! Tests of the audit of the counter and the set.

use lockattr_history::{Held, Written, Wrong, audit};

fn added(process: u32, read: u64, written: u64) -> Written {
    Written { process, element: u64::from(process), read, written }
}

fn held(count: u64, elements: &[u64]) -> Held {
    Held { count, elements: elements.iter().copied().collect() }
}

#[test]
fn all_that_was_acknowledged_is_there() {
    let written = [added(1, 0, 10), added(2, 20, 30)];
    assert_eq!(audit(&written, &held(2, &[1, 2])), Ok(()));
}

#[test]
fn more_may_be_there_than_was_acknowledged() {
    assert_eq!(audit(&[added(1, 0, 10)], &held(2, &[1, 9])), Ok(()));
}

#[test]
fn a_process_that_wrote_over_an_element_is_named() {
    let (late, lost, later) = (added(1, 0, 30), added(2, 10, 20), added(3, 40, 50));
    let early = added(4, 0, 5);
    let all = [early, late.clone(), lost.clone(), later];
    let wrong = audit(&all, &held(3, &[1, 3, 4]));
    let count = Wrong::Count { count: 3, acknowledged: 4 };
    assert_eq!(wrong, Err(vec![Wrong::Gone { lost, by: vec![late] }, count]));
    let told = wrong.unwrap_err()[0].to_string();
    let words =
        "element 2 of process 2, written at 20, is gone; process 1 had read at 0 and wrote at 30";
    assert_eq!(told, words);
}

#[test]
fn a_counter_that_is_not_the_sets_is_wrong() {
    let written = [added(1, 0, 10), added(2, 20, 30)];
    assert!(audit(&written, &held(1, &[1, 2])).is_err());
    assert!(audit(&written, &held(3, &[1, 2])).is_err());
}
