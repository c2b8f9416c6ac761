//! The answers of a hostile server: the replies that mean something, and replies that look like
//! them.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

/// What is sent for one request.
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    /// What the answer may be taken for: the number of a grant, or any number for a "yes".
    pub(super) means: Option<u64>,
    /// Whether the connection ends after it.
    pub(super) ends: bool,
}

impl Answer {
    pub(super) fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), means: None, ends: false }
    }
}

/// The correct reply, for `claims` claims (mostly one).
pub(super) fn sound(script: &str, claims: usize, random: &mut impl Rng) -> Answer {
    if script == "acquire" {
        let counter = random.random_range(1..1_u64 << 52);
        let bytes = format!(":{}\r\n", counter * 2 + u64::from(random.random_bool(0.5)));
        return Answer { means: Some(counter), ..Answer::new(bytes) };
    }
    if script == "delete" {
        return Answer { means: Some(1), ..Answer::new(":1\r\n") };
    }
    Answer { means: Some(1), ..Answer::new(bulk(&"1".repeat(claims))) }
}

/// Any reply, sometimes a correct one.
pub(super) fn any(script: &str, claims: usize, subscriber: &str, random: &mut StdRng) -> Answer {
    match random.random_range(0..10) {
        0..=3 => sound(script, claims, random),
        4 => {
            // A correct reply but for its end or one byte; the rest may not mean the same.
            let mut bytes = sound(script, claims, random).bytes;
            bytes.truncate(random.random_range(0..bytes.len()));
            // The connection ends, or the next bytes would complete the reply: two pieces may be a
            // "yes" together.
            Answer { ends: true, ..Answer::new(bytes) }
        }
        5 => {
            let length = random.random_range(0..40);
            let bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
            Answer { ends: true, ..Answer::new(bytes) }
        }
        6 => {
            let text = ERRORS.choose(random).copied().unwrap_or_default();
            Answer::new(format!("-{text}\r\n"))
        }
        7 => Answer::new([message(subscriber, random), bulk("")].concat()),
        // Some are several replies, and the next request would get the second one.
        _ => {
            let looks_like_it = LOOKS_LIKE_A_REPLY.choose(random).copied().unwrap_or_default();
            // This is the answer to a plain deletion.
            let means = (script == "delete" && looks_like_it.starts_with(":1\r\n")).then_some(1);
            Answer { ends: true, means, ..Answer::new(looks_like_it) }
        }
    }
}

/// A message that grants nothing, since it has the token of no claim.
fn message(subscriber: &str, random: &mut StdRng) -> String {
    let token = format!("{:032x}", random.random::<u128>());
    let messages = [
        format!("granted {token} 5 5 0"),
        format!("granted {} 5 5 0", subscriber.to_uppercase()),
        format!("granted +{subscriber}{subscriber} -1 -1 0"),
        format!("later {token} {}", u64::MAX),
        format!("wanted {token}"),
        "granted".to_owned(),
        String::new(),
    ];
    let message = messages.choose(random).cloned().unwrap_or_default();
    format!(
        ">3\r\n{}{}{}",
        bulk("message"),
        bulk(&format!("lockattr:inbox:{subscriber}")),
        bulk(&message)
    )
}

pub(super) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

const ERRORS: [&str; 8] = [
    "ERR what?",
    "NOSCRIPT No matching script.",
    "MOVED 1 127.0.0.1:1",
    "READONLY You can't write against a read only replica.",
    "NOPERM no",
    "LOADING Redis is loading",
    "OOM command not allowed",
    "WRONGTYPE of value",
];

/// What a lenient parser could take for a grant, for a "yes" or for another client's lock.
const LOOKS_LIKE_A_REPLY: [&str; 34] = [
    ":0\r\n",
    ":1\r\n",
    ":-1\r\n",
    ":-84\r\n",
    ":9223372036854775807\r\n",
    ":-9223372036854775808\r\n",
    "+OK\r\n",
    "+1\r\n",
    "+84\r\n",
    "$1\r\n1\n\r\n",
    "$2\r\n84\r\n",
    "$2\r\n11\r\n",
    "$2\r\n1x\r\n",
    "$1\r\nx\r\n",
    "$0\r\n\r\n",
    "$-1\r\n",
    "_\r\n",
    "#t\r\n",
    ",84.0\r\n",
    ",inf\r\n",
    "(36893488147419103232\r\n",
    "(84\r\n",
    "*0\r\n",
    "*1\r\n:84\r\n",
    "*2\r\n:84\r\n:0\r\n",
    "*3\r\n:84\r\n:84\r\n:84\r\n",
    "%1\r\n+a\r\n:84\r\n",
    "~1\r\n:84\r\n",
    "*3\r\n$1\r\na\r\n:-2\r\n:-1\r\n",
    "*3\r\n$1\r\na\r\n:9223372036854775807\r\n:9223372036854775807\r\n",
    "*3\r\n$5\r\n\u{fffd}=%\r\n:5000\r\n:5\r\n",
    "*4\r\n$1\r\na\r\n:5\r\n:5\r\n:84\r\n",
    "=5\r\ntxt:1\r\n",
    "*3\r\n$-1\r\n:5\r\n:5\r\n",
];
