//! The lower bound: `SET NX PX` and a script that compares and deletes, with only the client.

use std::sync::atomic::{AtomicU64, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Client, RedisResult, Script};
use tokio::time::sleep;

use super::{QUICK, TTL};
use crate::load::Task;

const RELEASE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";

/// One multiplexed connection for all tasks.
pub(crate) struct Bare {
    connection: MultiplexedConnection,
    release: Script,
    tokens: AtomicU64,
}

impl Bare {
    pub(crate) async fn connect(url: &str) -> Result<Self, String> {
        Self::open(url).await.map_err(|error| error.to_string())
    }

    async fn open(url: &str) -> RedisResult<Self> {
        let connection = Client::open(url)?.get_multiplexed_async_connection().await?;
        let tokens = AtomicU64::new(u64::from(std::process::id()) << 32);
        Ok(Self { connection, release: Script::new(RELEASE), tokens })
    }

    pub(super) async fn hold(&self, key: &str, task: &mut Task) -> Result<(), String> {
        let done: RedisResult<()> = async {
            let mut connection = self.connection.clone();
            let token = self.token();
            while !self.set(&mut connection, key, token).await? {
                sleep(QUICK).await;
            }
            task.inside(None).await;
            self.release(&mut connection, key, token).await
        }
        .await;
        done.map_err(|error| error.to_string())
    }

    /// The same for an uncontended key, without a body.
    pub(crate) async fn pair(&self, key: &str) -> Result<(), String> {
        let done: RedisResult<bool> = async {
            let mut connection = self.connection.clone();
            let token = self.token();
            let is_set = self.set(&mut connection, key, token).await?;
            self.release(&mut connection, key, token).await?;
            Ok(is_set)
        }
        .await;
        match done {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("another client holds {key}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Without a random number, to keep the bound as low as possible.
    fn token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    async fn release(
        &self,
        connection: &mut MultiplexedConnection,
        key: &str,
        token: u64,
    ) -> RedisResult<()> {
        self.release.key(key).arg(token).invoke_async(connection).await
    }

    async fn set(
        &self,
        connection: &mut MultiplexedConnection,
        key: &str,
        token: u64,
    ) -> RedisResult<bool> {
        let mut set = redis::cmd("SET");
        set.arg(key).arg(token).arg("NX").arg("PX").arg(TTL.as_millis() as u64);
        Ok(set.query_async::<Option<String>>(connection).await?.is_some())
    }
}
