//! Why a command failed: a sentence and an exit code.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use lockattr::{Error, printable};

use crate::background::unstopped;
use crate::exit;

/// Printed on stderr when the program ends.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()) }
    }

    /// A failure with the exit code of `run`.
    pub(crate) fn of_run(error: &Error) -> Self {
        let code = match error {
            Error::Store { .. } => exit::UNAVAILABLE,
            _ => exit::ERROR,
        };
        Self::new(code, error.to_string())
    }

    pub(crate) fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            report(&message);
        }
        ExitCode::from(self.code)
    }
}

/// One line on stderr, whatever the keys in it contain.
pub(crate) fn report(message: &str) {
    use io::Write;
    let message = printable(message);
    // Not `eprintln!`, which panics if the pipe has no reader.
    unstopped(|| writeln!(io::stderr(), "lockattr: {message}")).ok();
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(exit::ERROR, error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // The reader has closed the pipe, as in `lockattr ls | head`.
        if error.kind() == ErrorKind::BrokenPipe {
            return Self { code: exit::OK, message: None };
        }
        Self::new(exit::ERROR, error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}
