//! Tests that were red among all others, once more by themselves: whether it is the code that is
//! slow to answer, or the machine.
//!
//! Most tests of `it` have servers, processes and networks of their own, and many run side by side; those
//! of the command and of the shop have some as well.
//! What is red alone as well is red. What is not is named at the end of the run, as a test that
//! asks too much of a busy machine, or a fault that is seen rarely: either is a bug to be reported.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use crate::child;

/// More than this is no accident.
const FEW: usize = 3;

/// How often in a row each has to be green.
const TIMES: usize = 2;

/// The programs whose tests start servers.
const WITH_SERVERS: [&str; 3] = ["it", "cli", "shop"];

/// Runs tests to their end; those of these programs that were red, if they are few, again one by one, as
/// `alone` starts them. Which they were, if that made all well.
pub(crate) fn run(all: &mut Command, alone: impl Fn() -> Command) -> Result<Vec<String>, String> {
    judged(all, alone, &mut std::io::stdout())
}

fn judged(
    all: &mut Command,
    alone: impl Fn() -> Command,
    out: &mut dyn Write,
) -> Result<Vec<String>, String> {
    let (status, said) = aloud(all, out)?;
    if status.success() {
        return Ok(Vec::new());
    }
    let red = red(&said);
    if red.is_empty() || red.len() > FEW {
        return Err(format!("the tests failed: {status}"));
    }
    for _ in 0..TIMES {
        let mut command = alone();
        command.args(WITH_SERVERS.iter().flat_map(|program| ["--test", program]));
        command.args(["--", "--test-threads=1", "--exact"]).args(&red);
        let (status, said) = aloud(&mut command, out)?;
        // One that is in another program is not run by this at all.
        if !status.success() || passed(&said) != red.len() {
            return Err(format!("red among others, and not green alone: {}", red.join(", ")));
        }
    }
    Ok(red)
}

/// Runs it, and keeps what it prints while it is printed.
fn aloud(command: &mut Command, out: &mut dyn Write) -> Result<(ExitStatus, String), String> {
    let told = child::tell(command);
    eprintln!("xtask: {told}");
    let started = command.current_dir(child::root()).stdout(Stdio::piped()).spawn();
    let mut started = started.map_err(|error| format!("`{told}` could not be started: {error}"))?;
    let mut said = String::new();
    let mut lines = BufReader::new(started.stdout.take().expect("a pipe was asked for"));
    let mut line = Vec::new();
    let broken = |error| format!("`{told}`: {error}");
    while lines.read_until(b'\n', &mut line).map_err(broken)? > 0 {
        out.write_all(&line).map_err(broken)?;
        said += &String::from_utf8_lossy(&line);
        line.clear();
    }
    let status = started.wait().map_err(broken)?;
    Ok((status, said))
}

/// The tests that failed.
fn red(said: &str) -> Vec<String> {
    let name =
        |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    said.lines().filter_map(name).collect()
}

/// How many were green, in all programs.
fn passed(said: &str) -> usize {
    let count = |line: &str| {
        let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
        rest.split_once(" passed;")?.0.parse::<usize>().ok()
    };
    said.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{FEW, judged};

    const RED: &str = "test a::b ... FAILED\ntest c::d ... ok\ntest result: FAILED. 1 passed;\n";

    fn says(what: &str, status: i32) -> Command {
        let mut command = Command::new("sh");
        // What follows are its `$1` and so on.
        command.args(["-c", &format!("printf '%s' \"{what}\"; exit {status}"), "sh"]);
        command
    }

    fn run(all: &mut Command, alone: impl Fn() -> Command) -> Result<Vec<String>, String> {
        // Who reads what these tests print must not take it for tests.
        judged(all, alone, &mut Vec::new())
    }

    #[test]
    fn what_is_green_at_once_is_not_run_again() {
        let all = run(&mut says("test a::b ... ok\n", 0), || panic!("run again"));
        assert_eq!(all, Ok(Vec::new()));
    }

    #[test]
    fn what_is_green_alone_is_named() {
        let alone = || says("test result: ok. 1 passed; 0 failed\n", 0);
        assert_eq!(run(&mut says(RED, 101), alone), Ok(vec!["a::b".to_owned()]));
    }

    #[test]
    fn each_is_in_one_of_the_programs() {
        let red = "test a::b ... FAILED\ntest c::d ... FAILED\n";
        let alone = |second| {
            format!("test result: ok. 1 passed; 0 failed\ntest result: ok. {second} passed;\n")
        };
        run(&mut says(red, 101), || says(&alone(1), 0)).unwrap();
        run(&mut says(red, 101), || says(&alone(0), 0)).unwrap_err();
    }

    #[test]
    fn what_is_red_alone_is_red() {
        run(&mut says(RED, 101), || says("test result: FAILED. 0 passed;\n", 101)).unwrap_err();
    }

    #[test]
    fn what_was_not_run_alone_is_red() {
        run(&mut says(RED, 101), || says("test result: ok. 0 passed; 0 failed\n", 0)).unwrap_err();
    }

    #[test]
    fn many_are_no_accident_and_nor_is_a_program_that_does_not_build() {
        let many = "test a::b ... FAILED\n".repeat(FEW + 1);
        run(&mut says(&many, 101), || panic!("run again")).unwrap_err();
        run(&mut says("error: no such thing\n", 101), || panic!("run again")).unwrap_err();
    }
}
