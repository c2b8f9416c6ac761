//! A port that answers as Redis does until the request is about locks.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::answers::{Answer, any, bulk, sound};

/// How the source of each script ends, and the script's name.
const SCRIPTS: [(&str, &str); 5] = [
    ("acquire", include_str!("../../../../lockattr/src/engines/redis/acquire.lua")),
    ("renew", include_str!("../../../../lockattr/src/engines/redis/renew.lua")),
    ("release", include_str!("../../../../lockattr/src/engines/redis/release.lua")),
    ("holder", include_str!("../../../../lockattr/src/engines/redis/holder.lua")),
    ("delete", include_str!("../../../../lockattr/src/engines/redis/delete.lua")),
];

pub(super) struct Hostile {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    seed: u64,
    honest: AtomicBool,
    connections: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The scripts by their digests.
    scripts: HashMap<String, &'static str>,
    /// How often each script was run for each lock.
    asked: HashMap<(&'static str, String), u64>,
    /// Each answer that means something: the script, the lock, and its meaning.
    said: Vec<(&'static str, String, u64)>,
    subscriber: String,
    /// The lock that the last `SET` acquired, if the answer said so: the next number belongs to
    /// that acquisition.
    taken: Option<String>,
}

impl Hostile {
    pub(super) async fn start(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            seed,
            honest: AtomicBool::default(),
            connections: AtomicU64::default(),
            state: Mutex::default(),
        });
        let serving = shared.clone();
        let serve = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = serving.clone();
                tokio::spawn(async move { shared.serve(stream).await });
            }
        };
        Self { addr, shared, task: tokio::spawn(serve).abort_handle() }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(super) fn is_honest_now(&self) {
        self.shared.honest.store(true, Ordering::SeqCst);
    }

    /// The number of this key's last grant.
    pub(super) fn grant_of(&self, key: &str) -> Option<u64> {
        self.said("acquire", key).pop()
    }

    pub(super) fn said_yes(&self, script: &str, key: &str) -> bool {
        !self.said(script, key).is_empty()
    }

    fn said(&self, script: &str, key: &str) -> Vec<u64> {
        let state = self.shared.state.lock().unwrap();
        let about =
            |said: &&(&str, String, u64)| said.0 == script && said.1 == format!("lock:{key}");
        state.said.iter().filter(about).map(|said| said.2).collect()
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    async fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut stream = BufStream::new(stream);
        // Every fifth connection is hostile from its first reply on.
        let odd = self.connections.fetch_add(1, Ordering::SeqCst) % 5 == 4;
        loop {
            let words = request(&mut stream).await?;
            let answer = self.answer(&words, odd);
            stream.write_all(&answer.bytes).await.ok()?;
            stream.flush().await.ok()?;
            if answer.ends {
                return None;
            }
        }
    }

    fn answer(&self, words: &[String], odd: bool) -> Answer {
        let honest = self.honest.load(Ordering::SeqCst);
        let word = |nth: usize| words.get(nth).map(String::as_str).unwrap_or_default();
        let first = word(0).to_ascii_uppercase();
        if odd && !honest && first != "EVALSHA" {
            let mut random = self.random(&first, words.len() as u64);
            return any("", 1, "", &mut random);
        }
        match first.as_str() {
            "PING" => Answer::new("+PONG\r\n"),
            "HELLO" => Answer::new("%1\r\n+proto\r\n:3\r\n"),
            "SCRIPT" => Answer::new(bulk(&self.knows(word(2)))),
            "SUBSCRIBE" => {
                let subscriber = word(1).rsplit(':').next().unwrap_or_default();
                subscriber.clone_into(&mut self.state.lock().unwrap().subscriber);
                Answer::new(format!(">3\r\n{}{}:1\r\n", bulk("subscribe"), bulk(word(1))))
            }
            "EVALSHA" => self.runs(words, honest),
            "SET" => self.takes(word(1), honest),
            "INCR" | "INCRBY" => self.counts(),
            "DELEX" | "DELIFEQ" | "CAD" => Answer::new("-ERR unknown command\r\n"),
            _ => Answer::new("+OK\r\n"),
        }
    }

    /// Records a script and returns its digest.
    fn knows(&self, text: &str) -> String {
        let digest = redis::Script::new(text).get_hash().to_owned();
        let name = SCRIPTS.iter().find(|(_, end)| text.ends_with(end)).expect("one of ours").0;
        self.state.lock().unwrap().scripts.insert(digest.clone(), name);
        digest
    }

    /// The first command of the free path.
    fn takes(&self, lock: &str, honest: bool) -> Answer {
        let mut state = self.state.lock().unwrap();
        let nth = state.asked.entry(("set", lock.to_owned())).or_default();
        *nth += 1;
        let mut random = self.random(&["set", lock].concat(), *nth);
        let sound = honest || random.random_bool(0.5);
        state.taken = sound.then(|| lock.to_owned());
        match sound {
            true => Answer::new("+OK\r\n"),
            false => any("acquire", 1, &state.subscriber, &mut random),
        }
    }

    /// The second one. Its number counts if the first was answered with a grant.
    fn counts(&self) -> Answer {
        let mut state = self.state.lock().unwrap();
        let nth = state.asked.entry(("incr", String::new())).or_default();
        *nth += 1;
        let counter = self.random("incr", *nth).random_range(1..1_u64 << 52);
        if let Some(lock) = state.taken.take() {
            state.said.push(("acquire", lock, counter));
        }
        Answer::new(format!(":{counter}\r\n"))
    }

    fn runs(&self, words: &[String], honest: bool) -> Answer {
        let mut state = self.state.lock().unwrap();
        let Some(script) = state.scripts.get(&words[1]).copied() else {
            return Answer::new("-NOSCRIPT No matching script.\r\n");
        };
        let keys: usize = words[2].parse().unwrap();
        let mut locks = words[3..3 + keys].to_vec();
        // The first key is the counter, or a lock once more.
        if script != "delete" {
            locks.remove(0);
        }
        locks.retain(|name| name.starts_with("lock:"));
        let nth = state.asked.entry((script, locks[0].clone())).or_default();
        *nth += 1;
        let mut random = self.random(&[script, &locks[0]].concat(), *nth);
        let answer = match honest {
            true => sound(script, locks.len(), &mut random),
            false => any(script, locks.len(), &state.subscriber, &mut random),
        };
        if let Some(means) = answer.means {
            let script = if script == "delete" { "release" } else { script };
            state.said.extend(locks.into_iter().map(|lock| (script, lock, means)));
        }
        answer
    }

    /// The answer depends on nothing whose order may change in the next run.
    fn random(&self, about: &str, nth: u64) -> StdRng {
        let mut hasher = DefaultHasher::new();
        (self.seed, about, nth).hash(&mut hasher);
        StdRng::seed_from_u64(hasher.finish())
    }
}

async fn request(stream: &mut BufStream<TcpStream>) -> Option<Vec<String>> {
    let count = header(stream, '*').await?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; header(stream, '$').await? + 2];
        stream.read_exact(&mut word).await.ok()?;
        word.truncate(word.len() - 2);
        words.push(String::from_utf8_lossy(&word).into_owned());
    }
    Some(words)
}

async fn header(stream: &mut BufStream<TcpStream>, sign: char) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.trim_end().strip_prefix(sign)?.parse().ok()
}
