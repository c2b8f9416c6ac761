//! The harness' own connection to a server: looks behind the code under test, and meddles.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisResult};

use crate::proxy::digests;

/// By this name the harness knows its own connections in the server's list.
const NAME: &str = "harness";

/// Longer than the client's half second: these commands look, and a loaded machine may keep them
/// waiting.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A plain connection as the default user. Every method panics when the server does not answer.
#[derive(Debug, Clone)]
pub struct Cli {
    connection: MultiplexedConnection,
}

impl Cli {
    pub(crate) async fn connect(addr: String, password: Option<&str>) -> RedisResult<Self> {
        let client = Client::open(format!("redis://{addr}/"))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWERS_WITHIN))
            .set_response_timeout(Some(ANSWERS_WITHIN));
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        if let Some(password) = password {
            let () = redis::cmd("AUTH").arg(password).query_async(&mut connection).await?;
        }
        let () = redis::cmd("CLIENT").arg(&["SETNAME", NAME]).query_async(&mut connection).await?;
        Ok(Self { connection })
    }

    /// Any command, in the words of `redis-cli`: `cli.query::<String>(&["SET", "lock:a", "theirs",
    /// "PX", "500"])`.
    pub async fn query<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let answer = self.try_query(words).await;
        answer.unwrap_or_else(|error| panic!("{}: {error}", words.join(" ")))
    }

    /// [`query`](Self::query) for a command that the server may well refuse.
    ///
    /// # Errors
    ///
    /// What the server answered, or that it did not answer.
    pub async fn try_query<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let mut command = Cmd::new();
        command.arg(words);
        command.query_async(&mut self.connection.clone()).await
    }

    /// Runs one of our scripts, which the server knows: what the server does with a request that
    /// arrives late. The words are those behind the digest, so the number of keys comes first.
    pub async fn arrives_late<T: FromRedisValue>(&self, script: &str, words: &[&str]) -> T {
        for digest in digests(script) {
            if self.query::<Vec<bool>>(&["SCRIPT", "EXISTS", digest]).await == [true] {
                return self.query(&[&["EVALSHA", digest], words].concat()).await;
            }
        }
        panic!("the server does not know `{script}`");
    }

    /// The names that match, in order. By `SCAN`, so that `KEYS` is not among the commands counted.
    pub async fn keys(&self, pattern: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut cursor = "0".to_owned();
        loop {
            let words = ["SCAN", cursor.as_str(), "MATCH", pattern, "COUNT", "1000"];
            let (next, some): (String, Vec<String>) = self.query(&words).await;
            found.extend(some);
            if next == "0" {
                found.sort();
                // A name that moved during the scan is reported twice.
                found.dedup();
                return found;
            }
            cursor = next;
        }
    }

    /// What `GET` says.
    pub async fn value(&self, key: &str) -> Option<String> {
        self.query(&["GET", key]).await
    }

    /// The value of who has a lock, if anybody has: what is written for as long as claims wait
    /// (`queued=1 until=… kept=… VALUE`) is read as the store reads it.
    pub async fn held_value(&self, key: &str) -> Option<String> {
        let value = self.value(key).await?;
        let Some(marked) = value.strip_prefix("queued=1 until=") else { return Some(value) };
        let mut words = marked.splitn(3, ' ');
        let until: u128 = words.next()?.parse().ok()?;
        let value = words.nth(1).filter(|value| !value.is_empty())?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis();
        (now < until).then(|| value.to_owned())
    }

    /// Milliseconds left, or what `PTTL` says instead: -2 without the key, -1 with a key that never
    /// ends.
    pub async fn pttl(&self, key: &str) -> i64 {
        self.query(&["PTTL", key]).await
    }

    /// One field of `INFO`, such as `blocked_clients`.
    pub async fn info(&self, field: &str) -> String {
        let text: String = self.query(&["INFO"]).await;
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("`INFO` has no {field}")).to_owned()
    }

    /// How often each command was called since the start or [`reset_stats`](Self::reset_stats), the
    /// harness' own calls included; a subcommand goes by `client|list`.
    pub async fn commandstats(&self) -> BTreeMap<String, u64> {
        let text: String = self.query(&["INFO", "commandstats"]).await;
        text.lines()
            .filter_map(|line| {
                let (command, fields) = line.strip_prefix("cmdstat_")?.split_once(':')?;
                let calls = fields.strip_prefix("calls=")?.split(',').next()?;
                Some((command.to_owned(), calls.parse().ok()?))
            })
            .collect()
    }

    /// Counts commands from zero again.
    pub async fn reset_stats(&self) {
        let () = self.query(&["CONFIG", "RESETSTAT"]).await;
    }

    /// How many connections there are beside the harness' own.
    pub async fn client_count(&self) -> usize {
        self.others().await.len()
    }

    /// Ends every connection but the harness' own, and says how many.
    pub async fn client_kill_all_others(&self) -> usize {
        let mut killed = 0;
        for id in self.others().await {
            killed += self.query::<usize>(&["CLIENT", "KILL", "ID", &id]).await;
        }
        killed
    }

    /// Keeps every client waiting for so long, the harness as well.
    pub async fn client_pause(&self, pause: Duration) {
        let () = self.query(&["CLIENT", "PAUSE", &pause.as_millis().to_string(), "ALL"]).await;
    }

    /// Forgets all data.
    pub async fn flushall(&self) {
        let () = self.query(&["FLUSHALL"]).await;
    }

    /// Forgets all scripts, as a restart does.
    pub async fn script_flush(&self) {
        let () = self.query(&["SCRIPT", "FLUSH"]).await;
    }

    /// Writes all data to disk, for [`RedisServer::revive`](crate::RedisServer::revive) to find.
    pub async fn save(&self) {
        let () = self.query(&["SAVE"]).await;
    }

    /// A key's type, its value where it is a string, and its time left: for messages.
    pub(crate) async fn describe(&self, key: &str) -> String {
        // A node of a cluster refuses questions about its master's keys, and about those that move.
        let kind: String = match self.try_query(&["TYPE", key]).await {
            Ok(kind) => kind,
            Err(error) => return error.to_string(),
        };
        let value: Option<String> = match kind.as_str() {
            // It may be of another kind by now.
            "string" => self.try_query(&["GET", key]).await.ok().flatten(),
            _ => None,
        };
        format!("{kind} {value:?}, {} ms left", self.pttl(key).await)
    }

    /// The number of the process that answers, if one does and has all its data.
    pub(crate) async fn server_pid(&self) -> Option<u32> {
        let text: String = self.try_query(&["INFO"]).await.ok()?;
        let field = |name| text.lines().find_map(|line| line.strip_prefix(name));
        // A server that still loads refuses everything but such questions. A sentinel has nothing
        // to load, and does not speak of it.
        field("loading:").is_none_or(|loading| loading.trim() == "0").then_some(())?;
        field("process_id:")?.trim().parse().ok()
    }

    async fn others(&self) -> Vec<String> {
        let text: String = self.query(&["CLIENT", "LIST"]).await;
        text.lines()
            .filter(|line| !line.contains(&format!(" name={NAME} ")))
            .filter_map(|line| Some(line.strip_prefix("id=")?.split(' ').next()?.to_owned()))
            .collect()
    }
}
