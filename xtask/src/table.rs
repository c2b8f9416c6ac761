//! `cargo xtask table`: runs the tests of the stores, and prints their number for each store and
//! suite as Markdown.

use std::collections::{BTreeMap, BTreeSet};

use crate::{cargo_test, child, servers, test};

/// The columns: the contract, the faults, and the tests of one store only.
const SUITES: [&str; 3] = ["contract", "faults", "its own"];

/// The modules of the first two.
const CONTRACT: &str = "store_contract";
const FAULTS: &str = "engine_faults";

/// The number of passed tests of a suite, and of all its tests.
type Count = (usize, usize);

pub(crate) fn run() -> Result<(), String> {
    servers::ensure_all()?;
    // With the usual features, or everything would be built again.
    let mut tests = child::cargo(&["test", "--workspace", "--all-features", "--test", "it"]);
    test::in_parallel(&mut tests, test::FOR_EACH_CORE);
    let output = tests.current_dir(child::root()).output();
    let output = output.map_err(|error| format!("cargo could not be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let table = count_tests(&text);
    if table.is_empty() {
        return Err(format!("no test has run:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    print!("{}", markdown(&table));
    let failed = format!("tests failed:\n{}", cargo_test::failed(&text).join("\n"));
    if output.status.success() { Ok(()) } else { Err(failed) }
}

/// Counts the tests of each store by suite.
fn count_tests(output: &str) -> BTreeMap<String, [Count; 3]> {
    let tests: Vec<(Vec<&str>, bool)> = output.lines().filter_map(parse).collect();
    let of_contract = tests.iter().filter(|(path, _)| path[0] == CONTRACT);
    let stores: BTreeSet<&str> = of_contract.map(|(path, _)| path[path.len() - 2]).collect();
    let mut table = BTreeMap::<String, [Count; 3]>::new();
    for (path, passed) in &tests {
        let Some((store, suite)) = store_and_suite(path, &stores) else { continue };
        let (all_passed, all) = &mut table.entry(store).or_default()[suite];
        *all += 1;
        *all_passed += usize::from(*passed);
    }
    table
}

/// Splits `test postgres::queue::a_name ... ok` into its modules and name, and whether it passed.
fn parse(line: &str) -> Option<(Vec<&str>, bool)> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let path: Vec<_> = name.split("::").collect();
    let ran = !outcome.starts_with("ignored");
    (ran && path.len() > 1).then_some((path, outcome == "ok"))
}

/// Returns the store and the suite of a test.
fn store_and_suite(path: &[&str], stores: &BTreeSet<&str>) -> Option<(String, usize)> {
    match path {
        [CONTRACT, .., store, _] => Some(((*store).to_owned(), 0)),
        [FAULTS, store, _] => Some(((*store).to_owned(), 1)),
        // `redis::sentinel` and `postgres::session` are separate stores if the contract has them.
        [engine, part, ..] => {
            let names = [format!("{engine}_{part}"), (*part).to_owned(), (*engine).to_owned()];
            let store = names.into_iter().find(|name| stores.contains(name.as_str()))?;
            Some((store, 2))
        }
        _ => None,
    }
}

fn markdown(table: &BTreeMap<String, [Count; 3]>) -> String {
    let mut text = format!("| store | {} |\n|---|{}\n", SUITES.join(" | "), "---|".repeat(3));
    for (store, suites) in table {
        let cells = suites.map(|(passed, all)| match passed == all {
            _ if all == 0 => "–".to_owned(),
            true => all.to_string(),
            false => format!("**{passed} of {all}**"),
        });
        text += &format!("| {store} | {} |\n", cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{count_tests, markdown};

    #[test]
    fn each_test_is_counted_where_it_belongs() {
        let output = "\
running 9 tests
test store_contract::redis::a_free_lock_is_acquired ... ok
test store_contract::sentinel::a_free_lock_is_acquired ... ok
test store_contract::handed_on::redis::overtaken ... ok
test store_contract::memory::a_free_lock_is_acquired ... ok
test engine_faults::redis::killed ... FAILED
test engine_faults::redis::cut ... ok
test redis::away::gone_while_waiting ... ok
test redis::sentinel::failover::under_load ... ok
test key::odd ... ok
test result: FAILED. 8 passed; 1 failed";
        let expected = "\
| store | contract | faults | its own |
|---|---|---|---|
| memory | 1 | – | – |
| redis | 2 | **1 of 2** | 1 |
| sentinel | 1 | – | 1 |
";
        assert_eq!(markdown(&count_tests(output)), expected);
    }
}
