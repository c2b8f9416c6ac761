//! One change of what a server sends: of a byte, of its length, or of a value's type.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, IteratorRandom};

/// How the values of a protocol can change their types.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    typed: fn(&mut Vec<u8>, &mut StdRng),
    engine: &'static str,
    /// One in so many packets is changed: in some protocols a connection has some twenty before its
    /// first lock.
    pub(super) one_in: u32,
}

impl Change {
    pub(super) fn of(engine: &'static str) -> Self {
        let (typed, one_in): (fn(&mut Vec<u8>, &mut StdRng), _) = match engine {
            "postgres" => (postgres, 10),
            "mysql" => (|bytes, random| mysql(bytes, random), 10),
            "redis" | "resp2" => (redis, 10),
            "zookeeper" => (zookeeper, 10),
            // Without a type for each value.
            _ => (|bytes, random| any_byte(bytes, random), 4),
        };
        Self { typed, engine, one_in }
    }

    /// What every reply goes through.
    pub(super) fn translate(self, bytes: &mut Vec<u8>) {
        // A server that cannot push messages. Only the reply to `HELLO` is a map.
        if self.engine == "resp2" && bytes.starts_with(b"%") {
            *bytes = b"-NOPROTO unsupported protocol version\r\n+OK\r\n+OK\r\n".to_vec();
        }
    }

    pub(super) fn apply(self, bytes: &mut Vec<u8>, random: &mut StdRng) {
        match random.random_range(0..8) {
            0 => bytes.truncate(random.random_range(0..bytes.len())),
            // The ZooKeeper client reserves memory for as many names as a reply says, and ends the process.
            1 | 2 if self.engine != "zookeeper" => any_byte(bytes, random),
            _ => (self.typed)(bytes, random),
        }
    }
}

fn any_byte(bytes: &mut [u8], random: &mut StdRng) {
    let at = random.random_range(0..bytes.len());
    bytes[at] = match random.random_range(0..3) {
        0 => bytes[at].wrapping_add(1),
        1 => *[0, 0x7f, 0xff].choose(random).expect("some"),
        _ => random.random(),
    };
}

/// Where the payloads begin and end that `length` finds: it returns where a packet's payload begins,
/// and where it ends.
fn payloads(
    bytes: &[u8],
    length: impl Fn(&[u8]) -> Option<(usize, usize)>,
) -> Vec<std::ops::Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some((begins, ends)) = bytes.get(at..).and_then(&length) {
        if ends <= begins || at + ends > bytes.len() {
            break;
        }
        found.push(at + begins..at + ends);
        at += ends;
    }
    found
}

/// A column of a row that becomes `NULL`, or text that is none; a column of another type.
fn postgres(bytes: &mut Vec<u8>, random: &mut StdRng) {
    let length = |rest: &[u8]| {
        let length = rest.get(1..5)?.try_into().ok()?;
        Some((5, 1 + usize::try_from(u32::from_be_bytes(length)).ok()?))
    };
    let rows = payloads(bytes, length).into_iter().filter(|at| {
        // `DataRow` and `RowDescription`.
        matches!(bytes[at.start - 5], b'D' | b'T') && at.len() > 6
    });
    let Some(row) = rows.choose(random) else { return any_byte(bytes, random) };
    if bytes[row.start - 5] == b'T' {
        // The type of the last column: bytea, text, int8, bool.
        let kinds: [u8; 4] = [17, 25, 20, 16];
        let at = row.end - 12;
        bytes[at..at + 4].copy_from_slice(&[0, 0, 0, *kinds.choose(random).expect("some")]);
        return;
    }
    match random.random_range(0..3) {
        // The last byte of the last column, which no UTF-8 contains.
        0 => bytes[row.end - 1] = 0xff,
        // Fewer columns.
        1 => bytes[row.start + 1] = 0,
        // One column, `NULL`.
        _ => {
            let null = [&[b'D', 0, 0, 0, 10, 0, 1][..], &[0xff; 4]].concat();
            bytes.splice(row.start - 5..row.end, null);
        }
    }
}

/// A column of another type, a row in which it is `NULL`, another number of columns.
fn mysql(bytes: &mut [u8], random: &mut StdRng) {
    let length = |rest: &[u8]| {
        let [low, middle, high, _number, ..] = *rest else { return None };
        Some((4, 4 + usize::from(low) + 256 * usize::from(middle) + 65536 * usize::from(high)))
    };
    let all = payloads(bytes, length);
    let column = |at: &std::ops::Range<usize>| bytes[at.clone()].starts_with(b"\x03def");
    let columns = all.iter().filter(|at| column(at)).cloned();
    let rows = all.iter().skip_while(|at| !column(at)).filter(|at| !column(at)).cloned();
    match random.random_range(0..2) {
        0 => {
            let Some(at) = columns.choose(random) else { return any_byte(bytes, random) };
            // Integers of four and eight bytes, a double, a date, a string.
            let kind: u8 = *[3, 8, 5, 12, 0xfd].choose(random).expect("some");
            bytes[at.end - 6] = kind;
        }
        _ => {
            let Some(at) = rows.choose(random) else { return any_byte(bytes, random) };
            // In a binary row the second byte says which columns are `NULL`; in one of text, 0xfb is it.
            let (at, value) = match bytes[at.start] {
                0 if at.len() > 1 => (at.start + 1, 0xfc),
                _ => (at.start, 0xfb),
            };
            bytes[at] = value;
        }
    }
}

/// The sign of a reply or of a part of one, or its number.
fn redis(bytes: &mut Vec<u8>, random: &mut StdRng) {
    const SIGNS: &[u8] = b"+-:$*_#,%~>(=!|";
    const NUMBERS: [&str; 9] =
        ["-1", "0", "1", "2", "3", "40", "2147483647", "9223372036854775807", ""];
    let begins = |at: &usize| *at == 0 || bytes[at - 1] == b'\n';
    let parts = (0..bytes.len()).filter(begins).filter(|at| SIGNS.contains(&bytes[*at]));
    let Some(at) = parts.choose(random) else { return any_byte(bytes, random) };
    if random.random() {
        bytes[at] = *SIGNS.choose(random).expect("some");
        return;
    }
    let number = NUMBERS.choose(random).expect("some");
    let digits = bytes[at + 1..].iter().take_while(|byte| **byte != b'\r').count();
    bytes.splice(at + 1..=at + digits, number.bytes());
}

/// The length of a reply, the number of its request, or its error.
fn zookeeper(bytes: &mut Vec<u8>, random: &mut StdRng) {
    let length = |rest: &[u8]| {
        let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
        Some((4, 4 + usize::try_from(length).ok()?))
    };
    let replies = payloads(bytes, length);
    let Some(reply) = replies.iter().choose(random) else { return bytes.truncate(0) };
    let at = reply.start - 4 + [0, 4, 16].choose(random).expect("some");
    let value = [i32::MIN, -112, -110, -101, -4, -2, -1, 0, 1, i32::MAX].choose(random);
    if let Some(field) = bytes.get_mut(at..at + 4) {
        field.copy_from_slice(&value.expect("some").to_be_bytes());
    }
}
