//! Standard output: a terminal with a width, or a pipe that gets every line whole.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Standard output, flushed by [`finish`](Self::finish).
pub(crate) struct Output {
    to: BufWriter<StdoutLock<'static>>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { to: BufWriter::new(io::stdout().lock()) }
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{line}")?)
    }

    /// One object, in one line.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.to, value)?;
        self.line("")
    }

    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.to.flush()?)
    }
}

/// The width of lines; `None` if the output is no terminal.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (width, _height) = crossterm::terminal::size().ok()?;
    // A terminal that does not know its width reports zero.
    (width > 0).then_some(usize::from(width))
}
