//! The stock: a number in memory, or a key in the Redis server that also stores the locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, RedisResult};

const KEY: &str = "inventory:pieces";

/// The storage of the stock. It can be read and written, but not decremented atomically, which is
/// what makes the lock necessary.
#[derive(Clone)]
pub(crate) enum Shelf {
    Memory(Arc<AtomicI64>),
    Redis(MultiplexedConnection),
}

impl Shelf {
    pub(crate) async fn open(url: &str) -> RedisResult<Self> {
        if url.starts_with("memory:") {
            return Ok(Self::Memory(Arc::default()));
        }
        // The query belongs to lockattr.
        let server = url.split('?').next().unwrap_or(url);
        Ok(Self::Redis(redis::Client::open(server)?.get_multiplexed_async_connection().await?))
    }

    pub(crate) fn where_it_is(&self) -> &'static str {
        match self {
            Self::Memory(_) => "tasks of one process, in memory",
            Self::Redis(_) => "four processes, on Redis",
        }
    }

    pub(crate) async fn pieces(&self) -> RedisResult<i64> {
        match self {
            Self::Memory(pieces) => Ok(pieces.load(Ordering::SeqCst)),
            Self::Redis(connection) => connection.clone().get(KEY).await,
        }
    }

    pub(crate) async fn write(&self, pieces: i64) -> RedisResult<()> {
        match self {
            Self::Memory(shelf) => {
                shelf.store(pieces, Ordering::SeqCst);
                Ok(())
            }
            Self::Redis(connection) => connection.clone().set(KEY, pieces).await,
        }
    }

    pub(crate) async fn fill(&self, pieces: i64) -> RedisResult<()> {
        self.write(pieces).await
    }

    pub(crate) async fn clear(&self) -> RedisResult<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(connection) => connection.clone().del(KEY).await,
        }
    }
}
