//! `compare.md` is kept: every test, program and example that it names is there.

use std::fs;
use std::path::Path;

fn read(path: &str) -> Option<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).ok()
}

/// The cells of the rows of its tables, without their heads.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = page.lines().collect();
    let is_row = |line: &str| line.starts_with("| ");
    // The line of dashes stands below each head.
    let rows = lines.windows(2).filter(|two| is_row(two[0]) && !two[1].starts_with("|---"));
    rows.map(|two| two[0].trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// What stands between ticks in the last cell.
fn named<'a>(row: &[&'a str]) -> Vec<&'a str> {
    row.last().map(|cell| cell.split('`').skip(1).step_by(2).collect()).unwrap_or_default()
}

fn has_function(text: &str, name: &str) -> bool {
    text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<"))
}

fn in_folder(folder: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let entries = fs::read_dir(path).expect(folder).flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.map(|name| format!("{folder}/{name}")).collect()
}

/// The files in which a test may be, of those that stand in `tests/it` under its modules' names.
fn files(modules: &[&str]) -> Vec<String> {
    let whole = modules.join("/");
    match modules {
        // `store_contract::redis::…` is of one suite for all stores, and so are the faults.
        ["store_contract", ..] => in_folder("lockattr-contract/src/checks"),
        ["engine_faults", ..] => in_folder("tests/it/engine_faults"),
        ["leader_faults", ..] => in_folder("tests/it/leader_faults"),
        // Unit tests of the attribute.
        ["tests", rest @ ..] => vec![format!("lockattr-macros/src/tests/{}.rs", rest.join("/"))],
        _ => vec![
            format!("tests/it/{whole}.rs"),
            format!("lockattr-cli/tests/{whole}.rs"),
            format!("lockattr-cli/src/{whole}.rs"),
            format!("examples/shop/tests/{whole}.rs"),
        ],
    }
}

/// Whether a test, a program of `tests/ui` or a file of the repository is called that.
fn is_there(name: &str) -> bool {
    if name.starts_with("ui/") {
        return read(&format!("tests/{name}")).is_some();
    }
    match name.split("::").collect::<Vec<_>>().as_slice() {
        [path] => read(path).is_some(),
        [modules @ .., function] => {
            let texts = files(modules).iter().filter_map(|file| read(file)).collect::<String>();
            has_function(&texts, function)
        }
        [] => false,
    }
}

/// Red without: any of the functions or files that a row names.
#[test]
fn everything_that_a_row_names_is_there() {
    let page = read("docs/compare.md").expect("the page");
    let names: Vec<_> = rows(&page).iter().flat_map(|row| named(row)).collect();
    assert!(names.len() > 120, "{} names", names.len());
    let missing = names.into_iter().filter(|name| !is_there(name));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}

/// Red without: the last cell of a row that does not say **no**.
#[test]
fn every_row_names_something_or_says_that_we_do_not_have_it() {
    let page = read("docs/compare.md").expect("the page");
    let rows = rows(&page);
    assert!(rows.len() > 75, "{} rows", rows.len());
    let bare = rows.iter().filter(|row| named(row).is_empty());
    let bare: Vec<_> =
        bare.filter(|row| !row.join(" ").contains("**no**")).map(|row| row[0]).collect();
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}

/// The burns are numbered, and none is left out.
///
/// Red without: any of the rows.
#[test]
fn all_twenty_two_burns_are_answered() {
    let page = read("docs/compare.md").expect("the page");
    for number in 1..=22 {
        let rows = page.matches(&format!("\n| {number}. ")).count();
        assert_eq!(rows, 1, "rows for number {number}");
    }
}
