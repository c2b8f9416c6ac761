//! Standard output: a terminal with a width, or a pipe that gets every line whole.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;

use lockattr::printable;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
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

    /// One line, whatever the keys in it contain.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{}", printable(line))?)
    }

    /// A text for another program, exactly as it is.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.to.write_all(text.as_bytes())?)
    }

    /// One object, in one line.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        self.line(&escaped(&serde_json::to_string(value)?))
    }

    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.to.flush()?)
    }
}

/// The same JSON, with an escape for each character that is not [`printable`]: a program reads the key
/// as it is in the store, and a terminal is safe.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        if *printable(char.encode_utf8(&mut [0; 4])) == *char.encode_utf8(&mut [0; 4]) {
            text.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    text
}

/// Returns when the pipe or the socket of standard output has lost its reader, without a write; never
/// for a file.
pub(crate) async fn reader_gone() {
    let waiting = tokio::task::spawn_blocking(|| {
        let stdout = io::stdout();
        loop {
            // Without a requested event, only an error or a hang-up ends the wait.
            let mut polled = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
            match poll(&mut polled, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                polled => return polled.is_ok(),
            }
        }
    });
    if !matches!(waiting.await, Ok(true)) {
        // Then a write will notice it.
        std::future::pending::<()>().await;
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

#[cfg(test)]
mod tests {
    use super::escaped;

    /// Red without: `encode_utf16` in `escaped`.
    #[test]
    fn json_shows_what_is_not_printable_as_an_escape_and_keeps_its_value() {
        let key = "a\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{2028}\u{e0041}\"\\库👩\u{200d}🚀";
        let json = escaped(&serde_json::to_string(key).unwrap());
        assert_eq!(
            json,
            "\"a\\u001b[2J\\u007f\\u009b\\u202e\\u2028\\udb40\\udc41\\\"\\\\库👩\u{200d}🚀\""
        );
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), key);
    }
}
