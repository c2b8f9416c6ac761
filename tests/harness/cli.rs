//! The harness' own connection to a Redis server, to inspect and to change its state.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisResult};

use crate::eventually::HUNG;
use crate::proxy::digests;

/// The client name of the harness' own connections in the server's `CLIENT LIST`.
const NAME: &str = "harness";

/// A plain connection as the default user. Every method panics if the server does not respond.
#[derive(Debug, Clone)]
pub struct Cli {
    connection: MultiplexedConnection,
}

impl Cli {
    pub(crate) async fn connect(addr: String, password: Option<&str>) -> RedisResult<Self> {
        let client = Client::open(format!("redis://{addr}/"))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(HUNG))
            .set_response_timeout(Some(HUNG));
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        if let Some(password) = password {
            let () = redis::cmd("AUTH").arg(password).query_async(&mut connection).await?;
        }
        let () = redis::cmd("CLIENT").arg(&["SETNAME", NAME]).query_async(&mut connection).await?;
        Ok(Self { connection })
    }

    /// Sends any command, as in `redis-cli`: `cli.query::<String>(&["SET", "lock:a", "theirs",
    /// "PX", "500"])`.
    pub async fn query<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let reply = self.try_query(words).await;
        reply.unwrap_or_else(|error| panic!("{}: {error}", words.join(" ")))
    }

    /// [`query`](Self::query) for a command that the server may refuse.
    ///
    /// # Errors
    ///
    /// The server's error reply, or the connection's error.
    pub async fn try_query<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let mut command = Cmd::new();
        command.arg(words);
        command.query_async(&mut self.connection.clone()).await
    }

    /// Runs one of lockattr's scripts that the server has loaded, as if a late request arrived. The
    /// words are those after the digest, so the number of keys comes first.
    pub async fn arrives_late<T: FromRedisValue>(&self, script: &str, words: &[&str]) -> T {
        for digest in digests(script) {
            if self.query::<Vec<bool>>(&["SCRIPT", "EXISTS", digest]).await == [true] {
                return self.query(&[&["EVALSHA", digest], words].concat()).await;
            }
        }
        panic!("the server does not know `{script}`");
    }

    /// Returns the matching names, sorted. Uses `SCAN` to keep `KEYS` out of the command counts.
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

    /// Returns the reply of `GET`.
    pub async fn value(&self, key: &str) -> Option<String> {
        self.query(&["GET", key]).await
    }

    /// Returns the value of a lock's holder, if it has one. While claims wait, the key contains
    /// `queued=1 until=… kept=… VALUE`, which is read as the store reads it.
    pub async fn held_value(&self, key: &str) -> Option<String> {
        let value = self.value(key).await?;
        let Some(marked) = value.strip_prefix("queued=1 until=") else { return Some(value) };
        let mut words = marked.splitn(3, ' ');
        let until: u128 = words.next()?.parse().ok()?;
        let value = words.nth(1).filter(|value| !value.is_empty())?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis();
        (now < until).then(|| value.to_owned())
    }

    /// Returns the remaining TTL in milliseconds, or -2 if there is no such key, or -1 if it never
    /// expires.
    pub async fn pttl(&self, key: &str) -> i64 {
        self.query(&["PTTL", key]).await
    }

    /// Returns one field of `INFO`, such as `blocked_clients`.
    pub async fn info(&self, field: &str) -> String {
        let text: String = self.query(&["INFO"]).await;
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("`INFO` has no {field}")).to_owned()
    }

    /// Returns the number of calls of each command since the start or
    /// [`reset_stats`](Self::reset_stats), the harness' own calls included. A subcommand is named
    /// like `client|list`.
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

    /// Resets the command counts.
    pub async fn reset_stats(&self) {
        let () = self.query(&["CONFIG", "RESETSTAT"]).await;
    }

    /// Returns the ids of all connections other than the harness' own.
    pub async fn client_ids(&self) -> Vec<String> {
        let text: String = self.query(&["CLIENT", "LIST"]).await;
        text.lines()
            .filter(|line| !line.contains(&format!(" name={NAME} ")))
            .filter_map(|line| Some(line.strip_prefix("id=")?.split(' ').next()?.to_owned()))
            .collect()
    }

    /// Returns the number of connections other than the harness' own.
    pub async fn client_count(&self) -> usize {
        self.client_ids().await.len()
    }

    /// Closes every connection except the harness' own, and returns their number.
    pub async fn client_kill_all_others(&self) -> usize {
        let mut killed = 0;
        for id in self.client_ids().await {
            killed += self.query::<usize>(&["CLIENT", "KILL", "ID", &id]).await;
        }
        killed
    }

    /// Delays the commands of every client by `pause`, the harness' own too.
    pub async fn client_pause(&self, pause: Duration) {
        let () = self.query(&["CLIENT", "PAUSE", &pause.as_millis().to_string(), "ALL"]).await;
    }

    /// Ends the lease on a lock as if its time had passed: of each holder whose value contains `whose`,
    /// such as `pid=7`.
    pub async fn end_lease(&self, key: &str, whose: &str) {
        let script = "local lock = KEYS[1] \
            if redis.call('TYPE', lock).ok == 'zset' then \
              for _, value in ipairs(redis.call('ZRANGE', lock, 0, -1)) do \
                if string.find(value .. ' ', ARGV[1] .. '%D') then redis.call('ZADD', lock, 'XX', 1, value) end \
              end \
              return \
            end \
            local value = redis.call('GET', lock) \
            if not value or not string.find(value .. ' ', ARGV[1] .. '%D') then return end \
            local kept, rest = string.match(value, '^queued=1 until=%d+ kept=(%d+) (.*)') \
            if not kept then redis.call('DEL', lock) return end \
            redis.call('SET', lock, 'queued=1 until=1 kept=' .. kept .. ' ' .. rest, 'PXAT', kept)";
        let () = self.query(&["EVAL", script, "1", key, whose]).await;
    }

    /// Deletes all data.
    pub async fn flushall(&self) {
        let () = self.query(&["FLUSHALL"]).await;
    }

    /// Drops all loaded scripts, as a restart does.
    pub async fn script_flush(&self) {
        let () = self.query(&["SCRIPT", "FLUSH"]).await;
    }

    /// Writes all data to disk, for [`RedisServer::revive`](crate::RedisServer::revive) to load.
    pub async fn save(&self) {
        let () = self.query(&["SAVE"]).await;
    }

    /// Describes a key for messages: its type, its value if it is a string, and its remaining TTL.
    pub(crate) async fn describe(&self, key: &str) -> String {
        // A cluster node refuses commands on its master's keys, and on keys that are being moved.
        let kind: String = match self.try_query(&["TYPE", key]).await {
            Ok(kind) => kind,
            Err(error) => return error.to_string(),
        };
        let value: Option<String> = match kind.as_str() {
            // Its type may have changed meanwhile.
            "string" => self.try_query(&["GET", key]).await.ok().flatten(),
            _ => None,
        };
        format!("{kind} {value:?}, {} ms left", self.pttl(key).await)
    }

    /// Returns the process id of the server, if it responds and has loaded its data.
    pub(crate) async fn server_pid(&self) -> Option<u32> {
        let text: String = self.try_query(&["INFO"]).await.ok()?;
        let field = |name| text.lines().find_map(|line| line.strip_prefix(name));
        // While it loads data, a server responds to `INFO` but refuses most commands. A sentinel
        // loads nothing and has no such field.
        field("loading:").is_none_or(|loading| loading.trim() == "0").then_some(())?;
        field("process_id:")?.trim().parse().ok()
    }
}
