//! Checks the table of faults: every test that it names exists and has a mutant, which says what
//! the test is red without.

use std::fs;
use std::path::Path;

/// Reads a file of this package.
fn read(path: &str) -> Option<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()
}

/// Turns `redis::away::gone` into a file's text and a function's name. `cli::run::gone` is a test
/// of the command, `sim::leaders::gone` one of the simulation.
fn find(test: &str) -> Option<(String, &str)> {
    let (module, name) = test.rsplit_once("::")?;
    let (directory, module) = match module.split_once("::") {
        Some(("cli", module)) => ("../lockattr-cli/tests", module),
        Some(("sim", module)) => ("sim/tests", module),
        _ => ("it", module),
    };
    Some((read(&format!("{directory}/{}.rs", module.replace("::", "/")))?, name))
}

/// A test that runs on every engine, on every store, or on every store with a queue, is checked on one of them: Redis if
/// the fault occurs there.
fn has_mutant(test: &str, mutants: &str) -> bool {
    for suite in ["engine_faults", "leader_faults", "queue_promises"] {
        let of_suite = test.strip_prefix(suite).and_then(|test| test.strip_prefix("::"));
        if let Some((_, name)) = of_suite.and_then(|test| test.split_once("::")) {
            let (begins, ends) = (format!("test: it::{suite}::"), format!("::{name}"));
            return mutants.lines().any(|line| line.starts_with(&begins) && line.ends_with(&ends));
        }
    }
    let is_elsewhere = ["cli::", "sim::"].iter().any(|program| test.starts_with(program));
    let program = if is_elsewhere { "" } else { "it::" };
    mutants.contains(&format!("test: {program}{test}\n"))
}

fn fault(test: &str, mutants: &str) -> Option<&'static str> {
    let Some((text, name)) = find(test) else { return Some("no such file") };
    let is_there = ["(", "<"].iter().any(|end| text.contains(&format!("fn {name}{end}")));
    if !is_there {
        return Some("no such test");
    }
    (!has_mutant(test, mutants)).then_some("no mutant for it")
}

#[test]
fn every_row_names_a_test_with_a_mutant() {
    let table = read("FAULTS.md").expect("the table");
    let files = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/mutants")).unwrap();
    let mutants: String =
        files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(1));
    let tests: Vec<_> = rows.filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`')).collect();
    assert!(tests.len() > 60, "{} rows", tests.len());
    let faults =
        tests.iter().filter_map(|test| Some(format!("\n{test}: {}", fault(test, &mutants)?)));
    let faults: String = faults.collect();
    assert!(faults.is_empty(), "{faults}");
}
