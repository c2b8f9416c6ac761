//! When a server that was restarted may grant again.
//!
//! One of a quorum that came back empty would grant what is held still: with the others that said no
//! it could make a second majority. So it grants nothing until the longest lease that it may have
//! forgotten is over (Sanfilippo, *Distributed locks with Redis*, "delayed restarts").

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, RedisResult};
use tokio::time::Instant;

use crate::store::StoreError;

/// From when on a server grants, if it may have forgotten what it granted before.
#[derive(Clone, Copy)]
pub(super) struct GrantsFrom(Instant);

impl GrantsFrom {
    /// Asks the server how long it has been up.
    pub(super) async fn ask(
        connection: &mut MultiplexedConnection,
        longest_ttl: Duration,
    ) -> RedisResult<Self> {
        let mut info = redis::cmd("INFO");
        let info: String = info.arg("server").query_async(connection).await?;
        let uptime = uptime(&info).ok_or_else(|| {
            RedisError::from((ErrorKind::UnexpectedReturnType, "INFO without an uptime"))
        })?;
        Ok(Self(Instant::now() + longest_ttl.saturating_sub(uptime)))
    }

    /// An error, with nothing sent, as long as it grants nothing.
    pub(super) fn check(self, address: &str) -> Result<(), StoreError> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let sentence = format!("{address} was restarted, and grants nothing for {left:.0?} still");
        Err(StoreError::new(sentence).not_sent())
    }
}

/// Whole seconds, rounded down: less than it is.
fn uptime(info: &str) -> Option<Duration> {
    let seconds = info.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"))?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}
