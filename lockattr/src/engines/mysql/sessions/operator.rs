//! For operators, over a connection of its own: who holds a lock, and taking it from its holder.

use mysql_async::prelude::Queryable;
use mysql_async::{Error, ServerError};
use tokio::time::timeout;

use super::Sessions;
use super::statements::HOLDER;
use crate::engines::mysql::config::Config;
use crate::engines::mysql::connect::{Live, error_from};
use crate::engines::mysql::reply::exec_first;
use crate::store::{LockKey, StoreError};
use crate::{Holder, HolderId};

/// The server's error codes for a connection that is gone, and for one of another user.
const NO_SUCH_THREAD: u16 = 1094;
const NOT_OWNER: u16 = 1095;

/// Ends a session on the server.
pub(super) async fn end(config: &Config, id: u32) {
    let Ok(mut live) = Live::connect(config).await else { return };
    let end = live.connection.query_drop(format!("KILL {id}"));
    let _in_time = timeout(config.timing.response_timeout, end).await;
    live.abandon();
}

/// The id of the connection that holds a lock: what the server knows of the holder.
fn holder_id(connection: u64) -> HolderId {
    HolderId::of(format!("connection {connection}"))
}

impl Sessions {
    /// Whether the lock is held: the server reports only the connection that holds it.
    pub(in crate::engines::mysql) async fn holder(
        &self,
        key: &LockKey,
    ) -> Result<Option<Holder>, StoreError> {
        let mut live = Live::connect(&self.config).await?;
        let query = exec_first::<Option<u64>>(&mut live.connection, HOLDER, (key.name(),));
        let limit = self.config.timing.response_timeout;
        let found = match timeout(limit, query).await {
            Ok(found) => found.map_err(|error| error_from(&self.config.address, error)),
            Err(_) => Err(self.no_reply()),
        };
        live.abandon();
        let holder = |id| Holder { id: holder_id(id), ..Holder::default() };
        Ok(found?.flatten().map(holder))
    }

    /// Ends the connection that holds the lock, if it is the one with this id. Other locks are safe: each has its own
    /// connection.
    pub(in crate::engines::mysql) async fn force_release(
        &self,
        key: &LockKey,
        holder: HolderId,
    ) -> Result<bool, StoreError> {
        let mut live = Live::connect(&self.config).await?;
        let query = async {
            let id: Option<Option<u64>> =
                exec_first(&mut live.connection, HOLDER, (key.name(),)).await?;
            let Some(id) = id.flatten().filter(|id| holder_id(*id) == holder) else {
                return Ok(None);
            };
            Ok(Some((id, live.connection.query_drop(format!("KILL {id}")).await)))
        };
        let limit = self.config.timing.response_timeout;
        let killed: Result<_, Error> = match timeout(limit, query).await {
            Ok(killed) => killed,
            Err(_) => {
                live.abandon();
                return Err(self.no_reply());
            }
        };
        live.abandon();
        let failed = |error| error_from(&self.config.address, error);
        match killed.map_err(failed)? {
            None => Ok(false),
            // The connection has ended meanwhile.
            Some((_, Ok(()) | Err(Error::Server(ServerError { code: NO_SUCH_THREAD, .. })))) => {
                Ok(true)
            }
            Some((id, Err(Error::Server(ServerError { code: NOT_OWNER, .. })))) => {
                let sentence = format!(
                    "{}: a connection of another user holds the lock: end it as a user with the right to, \
                     with `KILL {id}`",
                    self.config.address
                );
                Err(StoreError::new(sentence).not_sent())
            }
            Some((_, Err(error))) => Err(failed(error)),
        }
    }
}
