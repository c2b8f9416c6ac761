//! Repeats failed tests alone, to see whether the code is wrong or the machine was only too busy.
//!
//! Most tests of `it` have their own servers, processes and networks, and many run in parallel; so do
//! some tests of the command and of the shop. A test that also fails alone fails the run. A test that
//! passes alone is named at the end of the run: it depends on a fast machine, or shows a rare fault.
//! Either is a bug to report.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use crate::child;

/// More failed tests than this are not repeated. On two cores that other machines use, too, nine of
/// 1,880 once failed together.
const MAX_FAILED: usize = 12;

/// How many times in a row each must pass alone.
const REPEATS: usize = 2;

/// The programs whose tests start servers.
const WITH_SERVERS: [&str; 3] = ["it", "cli", "shop"];

/// Runs all tests. Then repeats the few that failed one by one, in the programs [`WITH_SERVERS`] as
/// `alone` starts them. Returns their names if they now pass.
pub(crate) fn run(all: &mut Command, alone: impl Fn() -> Command) -> Result<Vec<String>, String> {
    run_and_repeat(all, alone, &mut std::io::stdout())
}

fn run_and_repeat(
    all: &mut Command,
    alone: impl Fn() -> Command,
    out: &mut dyn Write,
) -> Result<Vec<String>, String> {
    let (status, output) = run_and_capture(all, out)?;
    if status.success() {
        return Ok(Vec::new());
    }
    let failed = failed(&output);
    if failed.is_empty() || failed.len() > MAX_FAILED {
        return Err(format!("the tests failed: {status}"));
    }
    for _ in 0..REPEATS {
        let mut command = alone();
        command.args(WITH_SERVERS.iter().flat_map(|program| ["--test", program]));
        command.args(["--", "--test-threads=1", "--exact"]).args(&failed);
        let (status, output) = run_and_capture(&mut command, out)?;
        // This does not run a test of another program.
        if !status.success() || passed(&output) != failed.len() {
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
    use std::process::Command;

    use super::{MAX_FAILED, run_and_repeat};

    const FAILED: &str = "test a::b ... FAILED\ntest c::d ... ok\ntest result: FAILED. 1 passed;\n";

    fn printing(text: &str, status: i32) -> Command {
        let mut command = Command::new("sh");
        // Later arguments are the script's `$1` and so on.
        command.args(["-c", &format!("printf '%s' \"{text}\"; exit {status}"), "sh"]);
        command
    }

    fn run(all: &mut Command, alone: impl Fn() -> Command) -> Result<Vec<String>, String> {
        // Printed, this output would look like that of real tests.
        run_and_repeat(all, alone, &mut Vec::new())
    }

    #[test]
    fn tests_that_pass_are_not_repeated() {
        let all = run(&mut printing("test a::b ... ok\n", 0), || panic!("run again"));
        assert_eq!(all, Ok(Vec::new()));
    }

    #[test]
    fn a_test_that_passes_alone_is_named() {
        let alone = || printing("test result: ok. 1 passed; 0 failed\n", 0);
        assert_eq!(run(&mut printing(FAILED, 101), alone), Ok(vec!["a::b".to_owned()]));
    }

    #[test]
    fn each_repeated_test_is_in_one_of_the_programs() {
        let both = "test a::b ... FAILED\ntest c::d ... FAILED\n";
        let alone = |second| {
            format!("test result: ok. 1 passed; 0 failed\ntest result: ok. {second} passed;\n")
        };
        run(&mut printing(both, 101), || printing(&alone(1), 0)).unwrap();
        run(&mut printing(both, 101), || printing(&alone(0), 0)).unwrap_err();
    }

    #[test]
    fn a_test_that_fails_alone_fails_the_run() {
        run(&mut printing(FAILED, 101), || printing("test result: FAILED. 0 passed;\n", 101))
            .unwrap_err();
    }

    #[test]
    fn a_test_that_did_not_run_alone_fails_the_run() {
        run(&mut printing(FAILED, 101), || printing("test result: ok. 0 passed; 0 failed\n", 0))
            .unwrap_err();
    }

    #[test]
    fn many_failures_and_build_errors_are_not_repeated() {
        let many = "test a::b ... FAILED\n".repeat(MAX_FAILED + 1);
        run(&mut printing(&many, 101), || panic!("run again")).unwrap_err();
        run(&mut printing("error: not found\n", 101), || panic!("run again")).unwrap_err();
    }
}
