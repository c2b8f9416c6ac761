//! `cargo xtask test`: downloads the servers, then runs all tests but the long ones. `cargo xtask newest`: the tests
//! that start servers, on the newest ones. `cargo xtask deep`: the long tests.

mod long;

use std::process::Command;

use crate::newest::{self, Newest};
use crate::steps::Steps;
use crate::{again, child, servers};

/// Tests of models with many states, by parts of their names; `deep` runs them.
const MANY_STATES: [&str; 3] = ["holds", "past::", "retries::"];

/// All programs but `it`, `models`, and `core`, which is a part of `it`.
const OTHERS: [&str; 11] = [
    "--lib",
    "--bins",
    "--examples",
    "--test",
    "[!icm]*",
    "--test",
    "cli",
    "--test",
    "comparison",
    "--test",
    "counterexamples",
];

/// How many worlds of each kind to simulate beside the other tests.
const FEW_WORLDS: &str = "60";

/// How many worlds with leaders to simulate in `deep`.
const MANY_LEADERS: &str = "600";

/// How many tests of `it` run at a time for each core. They wait for most of their time: 1,400 s in all, of which 160 s
/// are of a core.
pub(crate) const FOR_EACH_CORE: usize = 6;

/// How many of the long tests run at a time for each core. Some of them have ten thousand callers.
const LONG_FOR_EACH_CORE: usize = 3;

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    servers::ensure_all()?;
    let newest = newest::obtain();
    if !words.is_empty() {
        return child::run(tests(&newest).args(arranged(words)));
    }
    let mut steps = Steps::default();
    steps.time("build", || child::run(tests(&newest).arg("--no-run")))?;
    let outcome = all(&newest, &mut steps);
    eprintln!("xtask: where the time went\n{}", steps.table());
    report(&outcome?);
    Ok(())
}

/// Runs all tests but the deep ones. Returns those that failed once.
///
/// One program after the other: in parallel with tests that compute, more tests of servers failed on two cores than
/// time was saved.
fn all(newest: &[Result<Newest, String>], steps: &mut Steps) -> Result<Vec<String>, String> {
    let run = |programs: &[&str]| {
        let mut tests = tests(newest);
        tests.arg("--no-fail-fast").args(programs);
        tests
    };
    let it = || run(&["--test", "it"]);
    let mut rare = steps.time("it", || again::run(it, &long::skipped()))?;
    let others = || {
        let mut others = run(&OTHERS);
        others.env("LOCKATTR_SIM_SEEDS", FEW_WORLDS);
        others
    };
    rare.extend(steps.time("all other programs", || again::run(others, &[]))?);
    let models = || run(&["--test", "models"]);
    let few_states = MANY_STATES.map(|name| ["--skip", name]).concat();
    rare.extend(steps.time("models", || again::run(models, &few_states))?);
    steps.time("examples in the docs", || child::run(tests(newest).arg("--doc")))?;
    Ok(rare)
}

pub(crate) fn newest() -> Result<(), String> {
    servers::ensure_all()?;
    let newest = newest::obtain();
    let mut steps = Steps::default();
    let outcome = on_newest(&newest, &mut steps);
    eprintln!("xtask: where the time went\n{}", steps.table());
    report(&outcome?);
    Ok(())
}

/// `cargo xtask deep`: what `test` leaves out. The long tests of `it`, the models with many states, except those that
/// take hours, as many simulated worlds as the tests define, and more with leaders.
pub(crate) fn deep() -> Result<(), String> {
    servers::ensure_all()?;
    let newest = newest::obtain();
    let mut steps = Steps::default();
    let it = || {
        let mut it = tests(&newest);
        in_parallel(&mut it, LONG_FOR_EACH_CORE);
        it.args(["--test", "it"]);
        it
    };
    let exact = ["--exact"].into_iter().chain(long::TESTS).collect::<Vec<_>>();
    let rare = steps.time("long tests of it", || again::run(it, &exact))?;
    report(&rare);
    // These compute: a test for each core.
    let deep = |test: &str, names: &[&str]| {
        let mut tests = child::cargo(&["test", "--workspace", "--all-features", "--test", test]);
        if test == "leaders" {
            tests.env("LOCKATTR_SIM_SEEDS", MANY_LEADERS);
        }
        child::run(tests.arg("--").args(names))
    };
    steps.time("models", || deep("models", &MANY_STATES))?;
    steps.time("simulated worlds", || deep("seeds", &[]))?;
    steps.time("simulated leaders", || deep("leaders", &[]))?;
    eprintln!("xtask: where the time went\n{}", steps.table());
    Ok(())
}

fn report(rare: &[String]) {
    for test in rare {
        eprintln!("xtask: RED ONCE among others, green twice alone: {test}. Please report it.");
    }
}

/// Cargo's tests, always with the same features, because otherwise everything is rebuilt.
fn tests(newest: &[Result<Newest, String>]) -> Command {
    let mut tests = child::cargo(&["test", "--workspace", "--all-features"]);
    // Some tests need features of the newest servers.
    tests.envs(newest.iter().flatten().map(Newest::named));
    in_parallel(&mut tests, FOR_EACH_CORE);
    tests
}

/// Most tests wait for servers, not for a core, so one test for each core would leave half of the time unused.
pub(crate) fn in_parallel(tests: &mut Command, for_each_core: usize) {
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        tests.env("RUST_TEST_THREADS", (for_each_core * cores).to_string());
    }
}

/// Runs the tests that start servers once on each of the newest. Returns those that failed once, after all have run.
fn on_newest(newest: &[Result<Newest, String>], steps: &mut Steps) -> Result<Vec<String>, String> {
    let (mut rare, mut failures) = (Vec::new(), Vec::new());
    for found in newest {
        let this = match found {
            Ok(this) => this,
            Err(reason) => {
                eprintln!("xtask: NOT RUN on the newest {reason}");
                continue;
            }
        };
        // If the environment chooses a server, all tests run on it anyway.
        if std::env::var_os(this.chosen_by()).is_some() {
            continue;
        }
        let Newest { program, version, .. } = this;
        eprintln!("xtask: on {version}");
        let on_this = || {
            let mut it = tests(newest);
            it.env(this.chosen_by(), program).args(["--test", "it"]);
            it
        };
        let options = [this.tests(), long::skipped()].concat();
        match steps.time(version, || again::run(on_this, &options)) {
            Ok(red_once) => rare.extend(red_once),
            Err(failure) => failures.push(format!("on {version}: {failure}")),
        }
    }
    if failures.is_empty() { Ok(rare) } else { Err(failures.join("\n")) }
}

/// Cargo takes one filter before its `--`; the tests take any number after it.
fn arranged(words: &[String]) -> Vec<&str> {
    let option = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let (filters, options) = words.split_at(option);
    let mut arranged: Vec<&str> = options.iter().map(String::as_str).collect();
    if !filters.is_empty() && !arranged.contains(&"--") {
        arranged.push("--");
    }
    arranged.extend(filters.iter().map(String::as_str));
    arranged
}

#[cfg(test)]
mod tests {
    use super::arranged;

    #[track_caller]
    fn check(words: &str, expected: &str) {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        assert_eq!(arranged(&words).join(" "), expected);
    }

    #[test]
    fn filters_go_behind_the_dashes_and_options_stay() {
        check("", "");
        check("lost", "-- lost");
        check("lost key", "-- lost key");
        check("-p lockattr lost", "-p lockattr lost");
        check("lost key -p lockattr", "-p lockattr -- lost key");
        check("lost --release -- --nocapture", "--release -- --nocapture lost");
    }
}
