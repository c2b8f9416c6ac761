//! The proxy's rules for single requests, its log and its counts.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use redis::Script as LuaScript;
use tokio::sync::watch;

/// The fault that one request meets.
///
/// A connection that has lost a request or a reply carries no more of them: a later reply would
/// belong to another request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The request, and what follows on its connection, reaches the server later.
    Delay(Duration),
    /// The server never receives the request, nor any later one of its connection.
    SwallowRequest,
    /// The server executes the request. Its reply and all later ones of its connection are dropped.
    SwallowReply,
    /// The request and all later ones of its connection are held until
    /// [`Proxy::pass`](super::Proxy::pass).
    HoldRequest,
    /// The server executes the request. Its reply and all later ones of its connection are held
    /// until [`Proxy::pass`](super::Proxy::pass).
    HoldReply,
    /// Both sides of the connection are closed, and the server never receives the request.
    ///
    /// The connection is closed instead of the reply: earlier requests get their replies first.
    CutBefore,
    /// The server executes the request. Both sides of the connection are closed instead of the
    /// reply, and the server receives no later request.
    CutAfter,
    /// The server's side is closed without the request, after the replies to earlier requests. The
    /// client's side stays open and silent.
    HalfOpen,
    /// The reply is this error, such as `LOADING Redis is loading`. The server never receives the
    /// request.
    Answer(String),
}

/// The rules, the log and the counts of all connections.
#[derive(Debug)]
pub(super) struct Script {
    rules: HashMap<String, Rules>,
    counts: HashMap<String, Counts>,
    pub(super) log: Vec<String>,
    /// The number of subscription messages still to drop.
    pub(super) messages_to_swallow: usize,
    /// Replaced to release what is held.
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

/// A gate that is closed until the next [`Script::pass`].
#[derive(Debug)]
pub(super) struct Gate(watch::Receiver<()>);

impl Gate {
    pub(super) async fn wait_until_open(&mut self) {
        // No value is ever sent: this waits for the error that the sender is gone.
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

    /// Removes the rules and opens the gates, but keeps the counts and the log.
    pub(super) fn pass(&mut self) {
        self.rules.clear();
        self.messages_to_swallow = 0;
        self.gate = watch::Sender::new(());
    }

    /// Records a client's request, and returns the fault that it meets.
    pub(super) fn record_request(&mut self, command: &str) -> Option<(Fault, Gate)> {
        self.log.push(command.to_owned());
        self.counts(command).seen += 1;
        let rules = self.rules.get_mut(command)?;
        let fault = rules.next.pop_front().or_else(|| rules.always.clone())?;
        Some((fault, Gate(self.gate.subscribe())))
    }

    /// Records a subscription message, and returns whether it passes.
    pub(super) fn record_message(&mut self) -> bool {
        self.counts("message").seen += 1;
        let swallowed = self.messages_to_swallow > 0;
        self.messages_to_swallow = self.messages_to_swallow.saturating_sub(1);
        !swallowed
    }

    /// Records a reply to a client.
    pub(super) fn record_reply(&mut self, command: &str) {
        self.counts(command).answered += 1;
    }

    pub(super) fn counts(&mut self, command: &str) -> &mut Counts {
        self.counts.entry(command.to_owned()).or_default()
    }

    fn rules(&mut self, command: &str) -> &mut Rules {
        self.rules.entry(command.to_owned()).or_default()
    }
}

/// Returns the name of a request: its first word, or the lockattr script that it runs.
pub(super) fn name(words: &[&[u8]]) -> String {
    let word = |index: usize| words.get(index).map(|word| String::from_utf8_lossy(word));
    let command = word(0).unwrap_or_default().to_lowercase();
    let script = match command.as_str() {
        "evalsha" => word(1).map(|digest| digest.to_lowercase()),
        "eval" => word(1).map(|text| digest(&text)),
        // The conditional delete of a server that has one is a release. Without arguments, it
        // probes whether the server has it.
        "delex" | "delifeq" | "cad" if words.len() == 1 => return "probe".to_owned(),
        "delex" | "delifeq" | "cad" => return "release".to_owned(),
        // A free lock is acquired by two commands: this one, and `INCR` of the fencing counter.
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

/// The names of lockattr's scripts by their digests. They are built from the files that
/// `scripts.rs` lists for each, so a new script needs no change here.
static SCRIPTS: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../lockattr/src/engines/redis");
    let read = |file: &str| {
        let text = fs::read_to_string(format!("{directory}/{file}"));
        text.unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let list = read("scripts.rs");
    let scripts = list.lines().filter_map(|line| line.trim().split_once(": script!("));
    let named = scripts.flat_map(|(name, files)| {
        // The free path's release.
        let name = if name == "delete" { "release" } else { name };
        // The variant of a single server, and that of a cluster's nodes.
        let text = |publish: &str| -> String {
            let files = files.replace("$publish", publish);
            // Every second piece is a quoted file name.
            files.split('"').skip(1).step_by(2).map(read).collect()
        };
        let texts = [text("\"publish.lua\""), text("\"spublish.lua\"")];
        texts.map(|text| (digest(&text), name.to_owned()))
    });
    named.collect()
});

/// Returns the digests of one of lockattr's scripts: on a single server, and on cluster nodes.
pub(crate) fn digests(name: &str) -> impl Iterator<Item = &'static str> {
    SCRIPTS.iter().filter(move |(_, script)| *script == name).map(|(digest, _)| digest.as_str())
}

fn digest(script: &str) -> String {
    LuaScript::new(script).get_hash().to_owned()
}
