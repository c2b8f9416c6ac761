//! What the algorithms of the counterexamples share: connections to servers, a clock, a lease.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisResult, Script};
use tokio::time::Instant;

use crate::arguments::Arguments;

/// The arguments of this process.
pub(super) struct Visit {
    pub(super) addrs: Vec<String>,
    pub(super) key: String,
    pub(super) ttl: Duration,
    pub(super) history: String,
    pub(super) process: u32,
    ahead: i64,
    now: i64,
}

impl Visit {
    pub(super) fn by(arguments: &Arguments) -> Result<Self, String> {
        let addrs: String = arguments.get_or("addrs", String::new())?;
        Ok(Self {
            addrs: addrs.split(',').map(str::to_owned).collect(),
            key: arguments.get_or("key", String::new())?,
            ttl: Duration::from_millis(arguments.get_or("ttl", 0)?),
            history: arguments.get_or("history", String::new())?,
            process: arguments.get_or("process", 0)?,
            ahead: arguments.get_or("clock", 0)?,
            now: arguments.get_or("now", 0)?,
        })
    }

    pub(super) fn clock(&self) -> Clock {
        Clock { ahead: self.ahead, now: self.now }
    }

    pub(super) async fn server(&self) -> RedisResult<Server> {
        Server::at(&self.addrs[0], &self.key, self.ttl).await
    }
}

/// A clock that may be wrong.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    ahead: i64,
    now: i64,
}

impl Clock {
    pub(super) fn milliseconds(self) -> i64 {
        if self.now != 0 {
            return self.now;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX) + self.ahead
    }
}

pub(super) struct Server {
    connection: MultiplexedConnection,
    pub(super) key: String,
    ttl: Duration,
}

/// The script from the articles: deletes the key if it has this value.
const COMPARE_AND_DELETE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/// No server is silent: one that is away refuses connections.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

impl Server {
    pub(super) async fn at(addr: &str, key: &str, ttl: Duration) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWERS_WITHIN))
            .set_response_timeout(Some(ANSWERS_WITHIN));
        let client = Client::open(format!("redis://{addr}/"))?;
        let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        Ok(Self { connection, key: format!("lock:{key}"), ttl })
    }

    /// Any command, as the article has it.
    pub(super) async fn query<T: FromRedisValue>(&mut self, words: &[&str]) -> RedisResult<T> {
        let mut command = Cmd::new();
        command.arg(words).query_async(&mut self.connection).await
    }

    /// `SET key value NX PX ttl`.
    pub(super) async fn set_nx_px(&mut self, value: &str) -> RedisResult<bool> {
        let (key, ttl) = (self.key.clone(), self.ttl.as_millis().to_string());
        let answer: Option<String> = self.query(&["SET", &key, value, "NX", "PX", &ttl]).await?;
        Ok(answer.is_some())
    }

    /// Deletes the key if it has this value, in one step.
    pub(super) async fn compare_and_delete(&mut self, value: &str) -> RedisResult<bool> {
        let script = Script::new(COMPARE_AND_DELETE);
        script.key(&self.key).arg(value).invoke_async(&mut self.connection).await
    }

    /// The algorithm's own script, over the lock and one more key.
    pub(super) async fn run<T: FromRedisValue>(
        &mut self,
        script: &str,
        other: &str,
        value: &str,
    ) -> RedisResult<T> {
        let (script, ttl) = (Script::new(script), self.ttl.as_millis().to_string());
        let mut call = script.key(&self.key);
        call.key(other).arg(value).arg(ttl).invoke_async(&mut self.connection).await
    }
}

/// The time until which a holder may believe that it holds: counted from before its request, on a
/// clock that goes on while the process is stopped.
pub(super) struct Lease {
    ttl: Duration,
    until: Option<Instant>,
}

impl Lease {
    pub(super) fn of(visit: &Visit) -> Self {
        Self { ttl: visit.ttl, until: None }
    }

    pub(super) fn from(&mut self, asked: Instant) {
        self.until = Some(asked + self.ttl);
    }

    pub(super) fn end(&mut self) {
        self.until = None;
    }

    pub(super) fn is_valid(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }
}

/// An answer as the articles have it.
pub(super) fn reply(done: bool) -> Result<super::Reply, Box<dyn Error>> {
    Ok(if done { super::Reply::Yes(None) } else { super::Reply::No })
}
