//! `cargo xtask test`: the servers first, then every test there is, then those that start servers
//! on the newest of them.

use std::process::Command;

use crate::newest::{self, Newest};
use crate::{again, child, servers};

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    servers::ensure_all()?;
    let newest = newest::obtain();
    let tests = || {
        let mut tests = child::cargo(&["test", "--workspace", "--all-features"]);
        // Some tests are of what only those can do.
        tests.envs(newest.iter().flatten().map(Newest::named));
        in_parallel(&mut tests);
        tests
    };
    if !words.is_empty() {
        return child::run(tests().args(arranged(words)));
    }
    let mut rare = again::run(tests().arg("--no-fail-fast"), tests)?;
    rare.extend(on_newest(&newest)?);
    for test in rare {
        eprintln!("xtask: RED ONCE among others, green twice alone: {test}. Please report it.");
    }
    Ok(())
}

/// Most tests wait for servers, not for a core: as many as there are cores leave half of the time
/// unused.
pub(crate) fn in_parallel(tests: &mut Command) {
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        tests.env("RUST_TEST_THREADS", (2 * cores).to_string());
    }
}

/// The tests that start servers, once on each of the newest; all of them, and then the verdict.
/// Which were red once.
fn on_newest(newest: &[Result<Newest, String>]) -> Result<Vec<String>, String> {
    let (mut rare, mut failures) = (Vec::new(), Vec::new());
    for found in newest {
        let this = match found {
            Ok(this) => this,
            Err(reason) => {
                eprintln!("xtask: NOT RUN on the newest {reason}");
                continue;
            }
        };
        // Who asks for another server has an answer now.
        if std::env::var_os(this.chosen_by()).is_some() {
            continue;
        }
        let Newest { program, version, .. } = this;
        eprintln!("xtask: on {version}");
        // The features as above, or all would be built again.
        let tests = || {
            let mut tests = child::cargo(&["test", "--workspace", "--all-features"]);
            tests.envs(newest.iter().flatten().map(Newest::named)).env(this.chosen_by(), program);
            in_parallel(&mut tests);
            tests
        };
        match again::run(tests().args(["--test", "it", "--"]).args(this.tests()), tests) {
            Ok(red_once) => rare.extend(red_once),
            Err(failure) => failures.push(format!("on {version}: {failure}")),
        }
    }
    if failures.is_empty() { Ok(rare) } else { Err(failures.join("\n")) }
}

/// Cargo takes one filter before its `--`; the tests take any number behind it.
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
