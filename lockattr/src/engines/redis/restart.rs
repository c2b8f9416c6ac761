//! When a server that was restarted may grant again.
//!
//! A server of a quorum that comes back empty would grant locks that are still held: together with
//! the servers that had refused them it could form a second majority. So it grants nothing until
//! the longest lease that it may have lost is over (Sanfilippo, *Distributed locks with Redis*,
//! "delayed restarts").

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, RedisResult};
use tokio::time::Instant;

use crate::store::StoreError;

/// Returns what the server reports about itself.
pub(super) async fn info(connection: &mut MultiplexedConnection) -> RedisResult<String> {
    redis::cmd("INFO").arg("server").query_async(connection).await
}

/// Returns the id that the server drew when it was started; `None` if a provider hides it.
pub(super) fn run_id(info: &str) -> Option<&str> {
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:"))?.trim();
    Some(run).filter(|run| run.len() >= 16 && run.bytes().any(|digit| digit != b'0'))
}

/// When a server begins to grant, if it may have lost what it granted before.
#[derive(Clone, Copy)]
pub(super) struct GrantsFrom(Instant);

impl GrantsFrom {
    /// Computes the instant from the server's uptime.
    pub(super) fn read(info: &str, longest_ttl: Duration) -> RedisResult<Self> {
        let uptime = uptime(info).ok_or_else(|| {
            RedisError::from((ErrorKind::UnexpectedReturnType, "INFO without an uptime"))
        })?;
        Ok(Self(Instant::now() + longest_ttl.saturating_sub(uptime)))
    }

    /// Returns an error, marked as not sent, as long as the server grants nothing.
    pub(super) fn check(self, address: &str) -> Result<(), StoreError> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let sentence =
            format!("{address} was restarted, and grants no locks for another {left:.0?}");
        Err(StoreError::new(sentence).not_sent())
    }
}

/// Returns the least uptime. The server reports the difference of two clock readings in whole
/// seconds: if it started a moment before a full second, it reports 1 a moment after.
fn uptime(info: &str) -> Option<Duration> {
    let seconds = info.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"))?;
    let uptime: u64 = seconds.trim().parse().ok()?;
    Some(Duration::from_secs(uptime.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the check of the length, or of the digits.
    #[test]
    fn a_number_that_a_provider_hides_is_none() {
        let is_known = |run: &str| run_id(&format!("# Server\r\nrun_id:{run}\r\n")).is_some();
        assert!(is_known("0f2a77c1a8b9c0d1e2f30415263748596a7b8c9d"));
        assert!(!is_known("0") && !is_known("") && !is_known(&"0".repeat(40)));
        assert_eq!(run_id("# Server\r\nuptime_in_days:7\r\n"), None);
    }

    /// Red without: the second that `uptime` subtracts.
    #[test]
    fn a_server_is_held_for_no_older_than_it_certainly_is() {
        let uptime_of =
            |seconds: u64| uptime(&format!("# Server\r\nuptime_in_seconds:{seconds}\r\n"));
        assert_eq!(uptime_of(0), Some(Duration::ZERO));
        assert_eq!(uptime_of(1), Some(Duration::ZERO), "it may have started just now");
        assert_eq!(uptime_of(60), Some(Duration::from_secs(59)));
        assert_eq!(uptime("# Server\r\nuptime_in_days:7\r\n"), None);
    }
}
