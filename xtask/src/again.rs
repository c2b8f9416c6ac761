//! Repeats failed tests alone, to see whether the code is wrong or the machine was only too busy.
//!
//! Most tests of `it` have their own servers, processes and networks, and many run in parallel; so do
//! some tests of the command, the shop and the SQLite store. A test that also fails alone fails the
//! run. A test that passes alone is named at the end of the run: it depends on a fast machine, or shows
//! a rare fault. Either is a bug to report.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use crate::child;

/// More failed tests than this are not repeated. On two cores that other machines use, too, nine of
/// 1,880 once failed together.
const MAX_FAILED: usize = 12;

/// How many times in a row each must pass alone.
const REPEATS: usize = 2;

/// Runs the tests of the programs that `cargo_test` starts, as `options` say. Then repeats the few that
/// failed one by one, in the same programs. Returns their names if they now pass.
pub(crate) fn run(
    cargo_test: impl Fn() -> Command,
    options: &[&str],
) -> Result<Vec<String>, String> {
    run_and_repeat(cargo_test, options, &mut std::io::stdout())
}

fn run_and_repeat(
    cargo_test: impl Fn() -> Command,
    options: &[&str],
    out: &mut dyn Write,
) -> Result<Vec<String>, String> {
    let (status, output) = run_and_capture(cargo_test().arg("--").args(options), out)?;
    if status.success() {
        return Ok(Vec::new());
    }
    let failed = failed(&output);
    if failed.is_empty() || failed.len() > MAX_FAILED {
        return Err(format!("the tests failed: {status}"));
    }
    for _ in 0..REPEATS {
        let mut command = cargo_test();
        command.args(["--", "--test-threads=1", "--exact"]).args(&failed);
        let (status, output) = run_and_capture(&mut command, out)?;
        // A test whose name several programs have is repeated in each.
        if !status.success() || passed(&output) < failed.len() {
            return Err(format!(
                "failed among all tests, and did not pass alone: {}",
                failed.join(", ")
            ));
        }
    }
    Ok(failed)
}

/// Runs a command, and returns its output, which it also prints.
fn run_and_capture(
    command: &mut Command,
    out: &mut dyn Write,
) -> Result<(ExitStatus, String), String> {
    let name = child::command_line(command);
    eprintln!("xtask: {name}");
    let started = command.current_dir(child::root()).stdout(Stdio::piped()).spawn();
    let mut started = started.map_err(|error| format!("`{name}` could not be started: {error}"))?;
    let mut output = String::new();
    let mut lines = BufReader::new(started.stdout.take().expect("stdout is a pipe"));
    let mut line = Vec::new();
    let io_error = |error| format!("`{name}`: {error}");
    while lines.read_until(b'\n', &mut line).map_err(io_error)? > 0 {
        out.write_all(&line).map_err(io_error)?;
        output += &String::from_utf8_lossy(&line);
        line.clear();
    }
    let status = started.wait().map_err(io_error)?;
    Ok((status, output))
}

/// Returns the names of the tests that failed.
fn failed(output: &str) -> Vec<String> {
    let name =
        |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    output.lines().filter_map(name).collect()
}

/// Returns how many tests passed, in all programs.
fn passed(output: &str) -> usize {
    let count = |line: &str| {
        let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
        rest.split_once(" passed;")?.0.parse::<usize>().ok()
    };
    output.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::Command;

    use super::{MAX_FAILED, run_and_repeat};

    const FAILED: &str = "test a::b ... FAILED\ntest c::d ... ok\ntest result: FAILED. 1 passed;\n";

    fn printing(text: &str, status: i32) -> Command {
        let mut command = Command::new("sh");
        // Later arguments are the script's `$1` and so on.
        command.args(["-c", &format!("printf '%s' \"{text}\"; exit {status}"), "sh"]);
        command
    }

    /// Runs tests that print `all` at first, and `alone` when they are repeated. Both have an exit status.
    fn run(all: (&str, i32), alone: Option<(&str, i32)>) -> Result<Vec<String>, String> {
        let runs = Cell::new(0);
        let cargo_test = || {
            let (text, status) =
                if runs.replace(runs.get() + 1) == 0 { all } else { alone.expect("no repetition") };
            printing(text, status)
        };
        // Printed, this output would look like that of real tests.
        run_and_repeat(cargo_test, &[], &mut Vec::new())
    }

    #[test]
    fn tests_that_pass_are_not_repeated() {
        assert_eq!(run(("test a::b ... ok\n", 0), None), Ok(Vec::new()));
    }

    #[test]
    fn a_test_that_passes_alone_is_named() {
        let alone = ("test result: ok. 1 passed; 0 failed\n", 0);
        assert_eq!(run((FAILED, 101), Some(alone)), Ok(vec!["a::b".to_owned()]));
    }

    /// The repetition starts each program again, also those in which no test failed.
    #[test]
    fn each_failed_test_must_be_repeated_in_its_program() {
        let both = ("test a::b ... FAILED\ntest c::d ... FAILED\n", 101);
        let alone = |second| {
            format!("test result: ok. 1 passed; 0 failed\ntest result: ok. {second} passed;\n")
        };
        run(both, Some((&alone(1), 0))).unwrap();
        run(both, Some((&alone(0), 0))).unwrap_err();
    }

    #[test]
    fn a_test_that_fails_alone_fails_the_run() {
        run((FAILED, 101), Some(("test result: FAILED. 0 passed;\n", 101))).unwrap_err();
    }

    #[test]
    fn a_test_that_did_not_run_alone_fails_the_run() {
        run((FAILED, 101), Some(("test result: ok. 0 passed; 0 failed\n", 0))).unwrap_err();
    }

    #[test]
    fn many_failures_and_build_errors_are_not_repeated() {
        run((&"test a::b ... FAILED\n".repeat(MAX_FAILED + 1), 101), None).unwrap_err();
        run(("error: not found\n", 101), None).unwrap_err();
    }
}
