//! What shall happen to which request, and which have come: the rules, the log and the counts.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use redis::Script as LuaScript;
use tokio::sync::watch;

/// What goes wrong with one request.
///
/// A connection that has lost a request or a reply carries no more of them: later bytes would
/// answer other questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It reaches the server that much later, and so does what follows on its connection.
    Delay(Duration),
    /// The server never gets it, nor any later request of its connection.
    SwallowRequest,
    /// The server executes it. Its reply and all later ones of its connection are dropped.
    SwallowReply,
    /// It and all later requests of its connection are kept for [`Proxy::pass`](super::Proxy::pass).
    HoldRequest,
    /// The server executes it. Its reply and all later ones of its connection are kept for
    /// [`Proxy::pass`](super::Proxy::pass).
    HoldReply,
    /// The connection ends on both sides, and the server never gets the request.
    ///
    /// It ends in the place of the reply: what was asked before is answered first.
    CutBefore,
    /// The server executes it. The connection ends on both sides instead of the reply, and the
    /// server gets no later request.
    CutAfter,
    /// The server's side ends without the request, once it has answered what was asked before. The
    /// client's side stays open and silent forever.
    HalfOpen,
    /// The reply is this error, such as `LOADING Redis is loading`; the server never learns of the
    /// request.
    Answer(String),
}

/// The rules for all connections, and what has come over them.
#[derive(Debug)]
pub(super) struct Script {
    rules: HashMap<String, Rules>,
    counts: HashMap<String, Counts>,
    pub(super) log: Vec<String>,
    /// How many of the next messages are not to arrive.
    pub(super) messages_to_swallow: usize,
    /// Dropped to let go what is held.
    gate: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Rules {
    next: VecDeque<Fault>,
    always: Option<Fault>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) seen: usize,
    pub(super) answered: usize,
}

/// Closed until the next [`Script::pass`].
#[derive(Debug)]
pub(super) struct Gate(watch::Receiver<()>);

impl Gate {
    pub(super) async fn opened(&mut self) {
        // Nothing is ever sent: the error is that the sender is gone.
        self.0.changed().await.ok();
    }
}

impl Script {
    pub(super) fn new() -> Self {
        Self {
            rules: HashMap::new(),
            counts: HashMap::new(),
            log: Vec::new(),
            messages_to_swallow: 0,
            gate: watch::Sender::new(()),
        }
    }

    pub(super) fn next(&mut self, command: &str, fault: Fault) {
        self.rules(command).next.push_back(fault);
    }

    pub(super) fn always(&mut self, command: &str, fault: Fault) {
        self.rules(command).always = Some(fault);
    }

    /// Forgets the rules and opens the gates. What is counted and logged stays.
    pub(super) fn pass(&mut self) {
        self.rules.clear();
        self.messages_to_swallow = 0;
        self.gate = watch::Sender::new(());
    }

    /// Takes note of a request that has come from a client, and says what shall happen to it.
    pub(super) fn asked(&mut self, command: &str) -> Option<(Fault, Gate)> {
        self.log.push(command.to_owned());
        self.counts(command).seen += 1;
        let rules = self.rules.get_mut(command)?;
        let fault = rules.next.pop_front().or_else(|| rules.always.clone())?;
        Some((fault, Gate(self.gate.subscribe())))
    }

    /// Takes note of a message that a client has subscribed to, and says whether it shall arrive.
    pub(super) fn told(&mut self) -> bool {
        self.counts("message").seen += 1;
        let swallowed = self.messages_to_swallow > 0;
        self.messages_to_swallow = self.messages_to_swallow.saturating_sub(1);
        !swallowed
    }

    /// Takes note of a reply that goes to a client.
    pub(super) fn answered(&mut self, command: &str) {
        self.counts(command).answered += 1;
    }

    pub(super) fn counts(&mut self, command: &str) -> &mut Counts {
        self.counts.entry(command.to_owned()).or_default()
    }

    fn rules(&mut self, command: &str) -> &mut Rules {
        self.rules.entry(command.to_owned()).or_default()
    }
}

/// The name that a request goes by: its first word, or which of our scripts it runs.
pub(super) fn name(words: &[&[u8]]) -> String {
    let word = |place: usize| words.get(place).map(|word| String::from_utf8_lossy(word));
    let command = word(0).unwrap_or_default().to_lowercase();
    let script = match command.as_str() {
        "evalsha" => word(1).map(|digest| digest.to_lowercase()),
        "eval" => word(1).map(|text| digest(&text)),
        // What a release is where the server can compare by itself; and the question whether it can.
        "delex" | "delifeq" | "cad" if words.len() == 1 => return "probe".to_owned(),
        "delex" | "delifeq" | "cad" => return "release".to_owned(),
        // A free lock is taken by two commands, of which the second counts.
        "set" if words.iter().any(|word| word.eq_ignore_ascii_case(b"NX")) => {
            return "acquire".to_owned();
        }
        "incr" if words.get(1).is_some_and(|key| key.starts_with(b"lockattr:fence")) => {
            return "count".to_owned();
        }
        _ => None,
    };
    script.and_then(|digest| SCRIPTS.get(&digest).cloned()).unwrap_or(command)
}

/// The names of our scripts by their digests. Read from where they lie, each by the files of which
/// `scripts.rs` makes it, so that a new one is known here as soon as there is one.
static SCRIPTS: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../lockattr/src/engines/redis");
    let read = |file: &str| {
        let text = fs::read_to_string(format!("{directory}/{file}"));
        text.unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let list = read("scripts.rs");
    let scripts = list.lines().filter_map(|line| line.trim().split_once(": script!("));
    let named = scripts.flat_map(|(name, files)| {
        // A release of the free path is a release.
        let name = if name == "delete" { "release" } else { name };
        // Of a single server, and of a cluster's nodes.
        let text = |publish: &str| -> String {
            let files = files.replace("$publish", publish);
            // Every second piece stands between quotation marks.
            files.split('"').skip(1).step_by(2).map(read).collect()
        };
        let texts = [text("\"publish.lua\""), text("\"spublish.lua\"")];
        texts.map(|text| (digest(&text), name.to_owned()))
    });
    named.collect()
});

/// The digests that one of our scripts has: on a single server, and on the nodes of a cluster.
pub(crate) fn digests(name: &str) -> impl Iterator<Item = &'static str> {
    SCRIPTS.iter().filter(move |(_, script)| *script == name).map(|(digest, _)| digest.as_str())
}

fn digest(script: &str) -> String {
    LuaScript::new(script).get_hash().to_owned()
}
