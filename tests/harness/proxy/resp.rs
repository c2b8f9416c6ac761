//! Splits a stream of bytes into RESP frames.
//!
//! It is not a parser, because the proxy only needs the length of a frame and some of its words.
//! The parser of redis-rs does not return how many bytes it has consumed; `redis-protocol` does,
//! but parses a frame from its start again with every new piece, and neither supports inline
//! commands. Streamed types, which no server sends, are not supported.

/// Takes bytes and returns whole frames, of requests or of replies.
#[derive(Debug)]
pub(super) struct Splitter {
    bytes: Vec<u8>,
    /// The number of bytes that are known to belong to the first frame.
    known: usize,
    /// The number of values that the first frame still lacks, nested ones included.
    missing: usize,
}

impl Splitter {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), known: 0, missing: 1 }
    }

    /// Appends bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next frame once it is complete.
    ///
    /// # Panics
    ///
    /// If the bytes are not RESP.
    pub(super) fn next_frame(&mut self) -> Option<Vec<u8>> {
        while self.missing > 0 {
            let value = Value::read(&self.bytes[self.known..])?;
            self.known += value.size;
            self.missing += value.inside;
            self.missing -= 1;
        }
        let rest = self.bytes.split_off(self.known);
        (self.known, self.missing) = (0, 1);
        Some(std::mem::replace(&mut self.bytes, rest))
    }
}

/// Returns the words of a request or a push: its bulk strings, or the words of an inline command,
/// with their quotes.
pub(super) fn words(frame: &[u8]) -> Vec<&[u8]> {
    if !frame.starts_with(b"*") && !frame.starts_with(b">") {
        let words = frame.split(u8::is_ascii_whitespace);
        return words.filter(|word| !word.is_empty()).collect();
    }
    let mut rest = frame;
    let mut words = Vec::new();
    while let Some(value) = Value::read(rest) {
        rest = &rest[value.size..];
        words.extend(value.string);
    }
    words
}

/// Returns whether a reply is an error.
pub(super) fn is_error(reply: &[u8]) -> bool {
    matches!(reply.first(), Some(b'-' | b'!'))
}

/// Returns whether a frame is a push message, which the server sends between replies.
pub(super) fn is_push(reply: &[u8]) -> bool {
    reply.starts_with(b">")
}

/// One value, or the head of an aggregate.
struct Value<'a> {
    /// Its length in bytes, without the values inside it.
    size: usize,
    /// The number of values inside it.
    inside: usize,
    /// The contents of a bulk string.
    string: Option<&'a [u8]>,
}

impl<'a> Value<'a> {
    /// Reads the value at the start of `bytes`, if it is complete.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let size = bytes.iter().position(|byte| *byte == b'\n')? + 1;
        let line = bytes[..size].trim_ascii_end();
        let count = || -> usize {
            let length = str::from_utf8(&line[1..]).ok().and_then(|text| text.parse::<i64>().ok());
            let length = length.unwrap_or_else(|| panic!("not RESP: {}", line.escape_ascii()));
            // RESP2 encodes null as a string or an array of length -1.
            length.max(0).unsigned_abs().try_into().expect("a length that fits into memory")
        };
        let inside = match line.first() {
            Some(b'$' | b'!' | b'=') if line[1..] != *b"-1" => {
                let end = size + count();
                // The string is followed by `\r\n`.
                bytes.get(..end + 2)?;
                return Some(Self { size: end + 2, inside: 0, string: Some(&bytes[size..end]) });
            }
            Some(b'*' | b'~' | b'>') => count(),
            Some(b'%') => 2 * count(),
            // An attribute: pairs as in a map, then the value that they describe.
            Some(b'|') => 2 * count() + 1,
            // All other types are one line, and so is an inline command.
            _ => 0,
        };
        Some(Self { size, inside, string: None })
    }
}

#[cfg(test)]
mod tests {
    use super::{Splitter, words};

    /// Checks that the frames come out whole, however the stream is cut.
    #[track_caller]
    fn check(frames: &[&str]) {
        let stream = frames.concat();
        for piece in 1..=stream.len() {
            let mut splitter = Splitter::new();
            let mut found = Vec::new();
            for bytes in stream.as_bytes().chunks(piece) {
                splitter.push(bytes);
                found.extend(std::iter::from_fn(|| splitter.next_frame()));
            }
            let found: Vec<_> = found.iter().map(|frame| str::from_utf8(frame).unwrap()).collect();
            assert_eq!(found, frames, "in pieces of {piece}");
        }
    }

    #[test]
    fn every_type_of_reply_ends_where_the_next_begins() {
        check(&["+OK\r\n", "-ERR no\r\n", ":1000\r\n", "$5\r\nhe\r\no\r\n", "$0\r\n\r\n"]);
        check(&["$-1\r\n", "*-1\r\n", "_\r\n", "#t\r\n", ",1.23\r\n", "(349\r\n", "*0\r\n"]);
        check(&[
            "!5\r\nERR x\r\n",
            "=7\r\ntxt:abc\r\n",
            "~1\r\n:1\r\n",
            ">1\r\n+pong\r\n",
            ":1\r\n",
        ]);
        check(&[
            "%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:2\r\n:3\r\n",
            "%0\r\n",
            "|1\r\n+a\r\n:1\r\n:2\r\n",
            ":3\r\n",
        ]);
        check(&["*3\r\n*1\r\n$1\r\na\r\n*-1\r\n%1\r\n+a\r\n~2\r\n:1\r\n_\r\n", "+OK\r\n"]);
    }

    #[test]
    fn requests_are_split_and_so_are_inline_commands() {
        check(&[
            "*1\r\n$4\r\nPING\r\n",
            "PING\r\n",
            "SET a b\n",
            "\r\n",
            "*2\r\n$3\r\nGET\r\n$1\r\n*\r\n",
        ]);
    }

    #[test]
    #[should_panic(expected = "not RESP: *?")]
    fn bytes_that_are_not_resp_panic() {
        check(&["*?\r\n:1\r\n.\r\n"]);
    }

    #[test]
    fn words_are_the_strings_of_a_frame() {
        assert_eq!(words(b"*2\r\n$3\r\nGET\r\n$3\r\na b\r\n"), [&b"GET"[..], b"a b"]);
        assert_eq!(words(b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"), [&b"subscribe"[..], b"a"]);
        assert_eq!(words(b" SET  a b\r\n"), [&b"SET"[..], b"a", b"b"]);
        assert_eq!(words(b"\r\n"), [b""; 0]);
    }
}
