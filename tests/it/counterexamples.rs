//! The counterexamples: the flawed algorithms of well-known articles, each with the fault that
//! breaks it and the checker's report, and lockattr under the same fault.
//!
//! A counterexample is a function that drives processes step by step. Its argument is the name of
//! their algorithm (`tests/node/counterexample.rs`): the article's or ours.

mod blind_watchdog;
mod count_field;
mod del_unchecked;
mod getset;
mod redlock_max;
mod resource;
mod setnx_expire;
mod stage;
mod timestamp_token;

use std::path::Path;

/// The row of each counterexample: the name of its algorithm in `docs/trust.md`, and the report.
const TABLE: [(&str, &[&str]); 7] = [
    ("`SETNX`, then `EXPIRE`", setnx_expire::REPORTED),
    ("`DEL` without a check", del_unchecked::REPORTED),
    ("timestamps with `GETSET`", getset::REPORTED),
    ("timestamp as token", timestamp_token::REPORTED),
    ("`count` field", count_field::REPORTED),
    ("Redlock with the greatest count", redlock_max::REPORTED),
    ("watchdog without the token", blind_watchdog::REPORTED),
];

#[test]
fn the_page_says_what_the_checker_reports() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/trust.md");
    let page = std::fs::read_to_string(page).expect("docs/trust.md");
    for (name, reported) in TABLE {
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        let last = row.trim_end_matches(" |").rsplit(" | ").next();
        assert_eq!(last, Some(reported.join("; ").as_str()), "in the row {row}");
    }
}
