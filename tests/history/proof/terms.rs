//! Tests of the checker of terms: it accepts what leaders may do, and rejects each flaw.

use lockattr_history::{TermEvent, TermKind, TermStep, check_terms};

/// Writes a history as words: `a1+` is the beginning of term 1 in process `a`, `=` a write, `!` a refused one, `?` one
/// that was refused while the lease was held, and `-` the end.
fn history(text: &str) -> Vec<TermEvent> {
    let event = |word: &str| {
        let (leader, step) = word.split_at(word.len() - 1);
        let step = match step {
            "+" => TermStep::Began,
            "=" => TermStep::Wrote,
            "!" => TermStep::Refused { held: false },
            "?" => TermStep::Refused { held: true },
            "-" => TermStep::Ended,
            step => panic!("no step `{step}`"),
        };
        let process = u32::from(leader.as_bytes()[0] - b'a');
        TermEvent { process, term: leader[1..].parse().expect("a term"), step }
    };
    text.split_whitespace().map(event).collect()
}

fn broken(text: &str) -> Vec<TermKind> {
    let found = check_terms(&history(text)).err().unwrap_or_default();
    found.into_iter().map(|violation| violation.kind).collect()
}

#[test]
fn terms_may_follow_each_other_with_gaps() {
    let judged = check_terms(&history("a1+ a1= a1= a1- b4+ b4= b4- a7+ a7=")).expect("a history");
    assert_eq!((judged.terms, judged.leaders, judged.wrote), (3, 2, 4));
    assert_eq!((judged.refused, judged.ended), (0, 2));
}

#[test]
fn a_leader_that_was_killed_records_no_end() {
    assert_eq!(broken("a1+ a1= b2+ b2= b2-"), []);
}

/// It slept past its lease, and does not know that another leads.
#[test]
fn a_leader_that_wakes_up_late_may_be_refused() {
    assert_eq!(broken("a1+ a1= b2+ b2= a1! a1- b2="), []);
}

/// Nothing was written in between, so nothing is damaged.
#[test]
fn a_late_write_may_be_accepted_before_the_first_of_the_next_term() {
    assert_eq!(broken("a1+ a1= b2+ a1= a1- b2="), []);
}

#[test]
fn a_write_after_one_of_a_later_term_is_found() {
    assert_eq!(broken("a1+ a1= b2+ b2= a1="), [TermKind::WroteAfterLater]);
    // Each of them.
    let twice = "a1+ b2+ a1= b2= a1= b2= a1=";
    assert_eq!(broken(twice), [TermKind::WroteAfterLater, TermKind::WroteAfterLater]);
}

#[test]
fn two_leaders_of_one_term_are_found() {
    assert_eq!(broken("a1+ a1= b1+ b1="), [TermKind::BeganTwice]);
    assert_eq!(broken("a1+ a1= a1- a1+ a1="), [TermKind::BeganTwice]);
}

#[test]
fn a_smaller_number_in_the_same_process_is_found() {
    assert_eq!(broken("a3+ a3- a2+ a2-"), [TermKind::WentBack]);
}

/// The next leader got a smaller number, so the resource refuses it although it leads.
#[test]
fn a_leader_that_is_refused_under_its_lease_is_found() {
    assert_eq!(broken("a3+ a3= a3- b2+ b2? b2-"), [TermKind::LedBesideAnother]);
    assert_eq!(broken("a1+ a1= b2+ b2= a1? b2="), [TermKind::LedBesideAnother]);
}

#[test]
fn a_write_after_the_end_of_the_body_is_found() {
    assert_eq!(broken("a1+ a1= a1- a1="), [TermKind::WroteOutsideTerm]);
    assert_eq!(broken("a1+ a1= a1- b2+ b2= a1!"), [TermKind::WroteOutsideTerm]);
    assert_eq!(broken("a1="), [TermKind::WroteOutsideTerm]);
    assert_eq!(broken("a1+ b1="), [TermKind::WroteOutsideTerm]);
}

#[test]
fn two_bodies_at_once_in_one_process_are_found() {
    assert_eq!(broken("a1+ a2+ a2="), [TermKind::BeganInsideTerm]);
}

#[test]
fn a_violation_names_its_events() {
    let found = check_terms(&history("a1+ b2+ b2= a1=")).expect_err("it is broken");
    let text = found[0].to_string();
    assert!(text.contains("event 2: process 1, term 2: Wrote"), "{text}");
    assert!(text.contains("event 3: process 0, term 1: Wrote"), "{text}");
}

#[test]
fn a_line_reads_back_and_half_a_line_does_not() {
    for event in history("a1+ a1= a1! a1? a1-") {
        let line = event.to_line();
        assert_eq!(TermEvent::from_line(&line), Some(event));
        assert_eq!(TermEvent::from_line(&line[..line.len() / 2]), None);
    }
}
