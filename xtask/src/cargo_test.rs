//! Runs `cargo test`, and names the programs and tests that failed.

use std::io::{self, BufRead, BufReader, Write};
use std::process::Command;

use crate::child;

/// Runs tests, and prints their output as it comes.
pub(crate) fn run(tests: Command) -> Result<(), String> {
    run_into(tests, &mut io::stdout())
}

/// Runs tests beside others. Prints their output in one piece when they have ended.
pub(crate) fn run_beside(tests: Command) -> Result<(), String> {
    let mut output = Vec::new();
    let outcome = run_into(tests, &mut output);
    io::stdout().write_all(&output).map_err(|error| format!("stdout: {error}"))?;
    outcome
}

/// Runs tests with both of their streams in `out`, and returns what failed.
fn run_into(mut tests: Command, out: &mut dyn Write) -> Result<(), String> {
    let name = child::command_line(&tests);
    let io_error = |error: io::Error| format!("`{name}`: {error}");
    let (reader, stdout) = io::pipe().map_err(io_error)?;
    let stderr = stdout.try_clone().map_err(io_error)?;
    let started = tests.current_dir(child::root()).stdout(stdout).stderr(stderr).spawn();
    // It keeps the pipe open.
    drop(tests);
    let mut started = started.map_err(|error| format!("`{name}` could not be started: {error}"))?;
    writeln!(out, "xtask: {name}").map_err(io_error)?;
    let (mut lines, mut line, mut output) = (BufReader::new(reader), Vec::new(), String::new());
    while lines.read_until(b'\n', &mut line).map_err(io_error)? > 0 {
        out.write_all(&line).map_err(io_error)?;
        output += &String::from_utf8_lossy(&line);
        line.clear();
    }
    let status = started.wait().map_err(io_error)?;
    if status.success() {
        return Ok(());
    }
    let failed = failed(&output).into_iter().map(|name| format!("\n    {name}"));
    Err(format!("failed: {status}{}", failed.collect::<String>()))
}

/// Returns the tests that failed, and the programs, which Cargo lists after all have run.
pub(crate) fn failed(output: &str) -> Vec<&str> {
    let name = |line| {
        let test =
            str::strip_prefix(line, "test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
        let program =
            || line.strip_prefix("    `")?.strip_suffix('`').filter(|it| it.starts_with("-p "));
        test.or_else(program)
    };
    output.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{failed, run_into};

    /// Prints to both streams, as `cargo test` does.
    fn printing(status: i32) -> Command {
        let mut command = Command::new("sh");
        let script =
            "echo 'test a::b ... ok'; echo 'test c::d ... FAILED'; printf \"$1\" >&2; exit $0";
        command.args([
            "-c",
            script,
            &status.to_string(),
            "error: 1 target failed:\n    `-p x --lib`\n",
        ]);
        command
    }

    /// Red without: the names in the error, or the status.
    #[test]
    fn the_error_names_the_tests_and_programs_that_failed() {
        let mut printed = Vec::new();
        let error = run_into(printing(101), &mut printed).unwrap_err();
        assert_eq!(error, "failed: exit status: 101\n    c::d\n    -p x --lib");
        let printed = String::from_utf8(printed).unwrap();
        assert!(
            printed.ends_with("... FAILED\nerror: 1 target failed:\n    `-p x --lib`\n"),
            "{printed}"
        );
        assert_eq!(run_into(printing(0), &mut Vec::new()), Ok(()));
    }

    #[test]
    fn only_failed_tests_are_named() {
        let output =
            "test a ... ok\ntest b ... ignored\nfailures:\n    b\ntest result: FAILED. 0 passed\n";
        assert_eq!(failed(output), Vec::<&str>::new());
    }
}
