//! What became of a test: read from the output of its program.

use std::fmt;

/// The outcome of a test with a mutant.
pub(crate) enum Outcome {
    /// With the message of its panic.
    Failed(String),
    Passed,
    /// The test did not run, with the output.
    NotRun(String),
}

/// Each test with its outcome.
pub(crate) type Outcomes = Vec<(String, Outcome)>;

impl Outcome {
    /// Returns the outcome of this test of a program with this output. A test that still ran when the
    /// program was killed has failed: it passes in time without the mutant.
    pub(crate) fn read(output: &str, has_ended: bool, test: &str) -> Self {
        let has = |end: &str| output.lines().any(|line| line == format!("test {test} ... {end}"));
        match () {
            () if has("FAILED") => Self::Failed(message(output, test)),
            () if has("ok") => Self::Passed,
            () if !has_ended => Self::Failed("it does not end".to_owned()),
            () => Self::NotRun(output.to_owned()),
        }
    }

    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Passed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) => write!(f, "fails: {message}"),
            Self::Passed => f.write_str("PASSES"),
            Self::NotRun(output) => write!(f, "DID NOT RUN:\n{output}"),
        }
    }
}

/// Returns the first message that this test has panicked with: it tells whether the test fails for the
/// right reason.
fn message(output: &str, test: &str) -> String {
    let lines = output.lines().skip_while(|line| *line != format!("---- {test} stdout ----"));
    let mut lines = lines.skip(1).take_while(|line| !line.starts_with("---- "));
    let found = lines.by_ref().any(|line| line.contains(" panicked at "));
    found.then(|| lines.next()).flatten().unwrap_or("without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Outcome, message};

    #[test]
    fn a_test_without_an_outcome_fails_if_its_program_was_killed() {
        let read = |has_ended, test| Outcome::read("test a ... ok\n", has_ended, test).to_string();
        assert_eq!(read(false, "a"), "PASSES");
        assert_eq!(read(false, "b"), "fails: it does not end");
        assert_eq!(read(true, "b"), "DID NOT RUN:\ntest a ... ok\n");
    }

    #[test]
    fn the_message_is_that_of_the_test() {
        let output = "test b ... FAILED\n---- a stdout ----\nthread 'a' (7) panicked at a.rs:1:1:\none\n\n\
                      ---- b stdout ----\nseed\nthread 'b' panicked at b.rs:1:1:\ntwo\nmore\n";
        assert_eq!(message(output, "b"), "two");
        assert_eq!(message(output, "c"), "without a message");
    }
}
