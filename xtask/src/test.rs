//! `cargo xtask test`: downloads the servers, then runs all tests but the long ones. `cargo xtask newest`: the tests
//! that start servers, on the newest ones. `cargo xtask long` and `cargo xtask deep`: what `test` leaves out.

mod drawn;
mod long;
mod programs;

use std::process::Command;

use crate::newest::{self, Newest};
use crate::steps::Steps;
use crate::{cargo_test, child, servers};
use programs::{COMPUTING, WITH_SERVERS};

/// Tests of models with many states, by parts of their names; `deep` runs them.
const MANY_STATES: [&str; 3] = ["holds", "past::", "retries::"];

/// How many worlds of each kind to simulate beside the other tests.
const FEW_WORLDS: &str = "60";

/// How many worlds with leaders to simulate in `deep`.
const MANY_LEADERS: &str = "600";

/// How many tests of `it` run at a time for each core. They wait for most of their time: 1,400 s in all, of which 160 s
/// are of a core. With fewer, two cores have nothing to do for a part of the run.
pub(crate) const FOR_EACH_CORE: usize = 12;

/// How many of the long tests run at a time for each core. Some of them have ten thousand callers, and with more at a
/// time, the run would end no sooner: the longest test takes most of it.
const LONG_FOR_EACH_CORE: usize = 3;

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    servers::ensure_all()?;
    let newest = newest::obtain();
    if !words.is_empty() {
        return child::run(tests(&newest).args(arranged(words)));
    }
    let mut steps = Steps::default();
    steps.run("build", || child::run(tests(&newest).arg("--no-run")));
    // Without a build, no test can run.
    if steps.have_passed() {
        all(&newest, &mut steps);
    }
    steps.end()
}

/// Runs all tests but those of `long` and `deep`: those that compute beside those that wait for servers.
fn all(newest: &[Result<Newest, String>], steps: &mut Steps) {
    steps.beside(
        |steps| {
            let it = selected(newest, &["--test", "it"], &without_long());
            steps.run("it", || cargo_test::run(it));
            let others = selected(newest, &programs::arguments(&WITH_SERVERS), &[]);
            steps.run("other programs with servers", || cargo_test::run(others));
        },
        |steps| {
            let units = ["--lib", "--bins", "--examples"];
            let programs = [&units[..], &programs::arguments(&COMPUTING)].concat();
            let mut programs = computing(newest, &programs, &[]);
            programs.env("LOCKATTR_SIM_SEEDS", FEW_WORLDS);
            steps.run("programs without servers", || cargo_test::run_beside(programs));
            let models = computing(newest, &["--test", "models"], &skipping(&MANY_STATES));
            steps.run("models", || cargo_test::run_beside(models));
            let examples = computing(newest, &["--doc"], &[]);
            steps.run("examples in the docs", || cargo_test::run_beside(examples));
        },
    );
}

/// `cargo xtask newest`: runs the tests that start servers once on each of the newest.
pub(crate) fn newest() -> Result<(), String> {
    servers::ensure_all()?;
    let newest = newest::obtain();
    let mut steps = Steps::default();
    for found in &newest {
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
        let filters = [this.filters(), without_long()].concat();
        let mut it = selected(&newest, &["--test", "it"], &filters);
        it.env(this.chosen_by(), &this.program);
        steps.run(&this.version, || cargo_test::run(it));
    }
    steps.end()
}

/// `cargo xtask long`: runs the tests of `it` that take longest, and those that choose at random what they do.
pub(crate) fn long() -> Result<(), String> {
    servers::ensure_all()?;
    let newest = newest::obtain();
    let seed = drawn::seed("long");
    let mut steps = Steps::default();
    let mut run = |name: &str, programs: &[&str], options: &[&str]| {
        let mut tests = selected(&newest, programs, options);
        tests.env(drawn::SEED, &seed);
        in_parallel(&mut tests, LONG_FOR_EACH_CORE);
        steps.run(name, || cargo_test::run(tests));
    };
    run("long tests", &["--test", "it"], &[&["--exact"][..], &long::TESTS].concat());
    run("tests at random", &["--test", "it", "--test", "proof"], &drawn::TESTS);
    let repeated = [&long::REPEATED[..], &skipping(&drawn::TESTS)].concat();
    let repeated = selected(&newest, &["--test", "it"], &repeated);
    steps.run("suites on every store", || cargo_test::run(repeated));
    steps.end()
}

/// `cargo xtask deep`: runs the models with many states, except those that take hours, as many simulated worlds as the
/// tests define, and more with leaders.
pub(crate) fn deep() -> Result<(), String> {
    let seed = drawn::seed("deep");
    let mut steps = Steps::default();
    let mut run = |name: &str, program: &str, options: &[&str], worlds: Option<&str>| {
        let mut tests = computing(&[], &["--test", program], options);
        tests.env(drawn::SEED, &seed).envs(worlds.map(|worlds| ("LOCKATTR_SIM_SEEDS", worlds)));
        steps.run(name, || cargo_test::run(tests));
    };
    run("models", "models", &MANY_STATES, None);
    run("simulated worlds", "seeds", &[], None);
    run("simulated leaders", "leaders", &[], Some(MANY_LEADERS));
    steps.end()
}

/// Cargo's tests, always with the same features, because otherwise everything is rebuilt.
fn tests(newest: &[Result<Newest, String>]) -> Command {
    let mut tests = child::cargo(&["test", "--workspace", "--all-features"]);
    // Some tests need features of the newest servers.
    tests.envs(newest.iter().flatten().map(Newest::named));
    in_parallel(&mut tests, FOR_EACH_CORE);
    tests
}

/// All of these programs, also after one has failed, with these options.
fn selected(newest: &[Result<Newest, String>], programs: &[&str], options: &[&str]) -> Command {
    let mut tests = tests(newest);
    tests.arg("--no-fail-fast").args(programs).arg("--").args(options);
    tests
}

/// The same for programs that compute: a test for each core.
fn computing(newest: &[Result<Newest, String>], programs: &[&str], options: &[&str]) -> Command {
    let mut tests = selected(newest, programs, options);
    in_parallel(&mut tests, 1);
    tests
}

/// Most tests wait for servers, not for a core, so one test for each core would leave half of the time unused.
pub(crate) fn in_parallel(tests: &mut Command, for_each_core: usize) {
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        tests.env("RUST_TEST_THREADS", (for_each_core * cores).to_string());
    }
}

/// Returns what tells `it` to leave out what `long` runs.
fn without_long() -> Vec<&'static str> {
    [skipping(&long::TESTS), skipping(&long::REPEATED)].concat()
}

/// Returns what tells a test program to leave these tests out.
pub(crate) fn skipping(names: &[&'static str]) -> Vec<&'static str> {
    names.iter().flat_map(|name| ["--skip", name]).collect()
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
