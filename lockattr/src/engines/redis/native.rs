//! The server's own compare-and-delete, if it has one: the release of the free path.
//!
//! It costs the server a third of a script. A renewal has no such command: `SET … IFEQ … PX` would
//! shorten a lease that `extend` has made longer, if it arrives later.

use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};

use crate::store::ReleaseRequest;

/// The command of the server behind one connection that deletes a key if it has this value.
pub(super) struct Native {
    name: Name,
    /// This user may not run it, or the server replied with an unexpected error.
    refused: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// Redis 8.4 and later: `DELEX key IFEQ value`.
    Delex,
    /// Valkey 9.0 and later: `DELIFEQ key value`.
    Delifeq,
    /// Tair: `CAD key value`.
    Cad,
}

const ALL: [Name; 3] = [Name::Delex, Name::Delifeq, Name::Cad];

/// The outcome of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deleted {
    /// The claim held it, and no process waits for it.
    Done,
    /// It has another value: the lock was lost, or claims wait for it. The script must decide.
    NeedsScript,
}

impl Native {
    /// Finds the command that the server has. Each is sent without arguments: a server that has it
    /// reports that before it checks rights, memory, or whether writes are paused.
    pub(super) async fn find(connection: &mut MultiplexedConnection) -> RedisResult<Option<Self>> {
        let mut probes = redis::pipe();
        for name in ALL {
            probes.add_command(name.command());
        }
        let replies = all_replies(&mut probes, connection).await?;
        let known = |reply: &Reply| {
            let error = reply.as_ref().map_err(ToString::to_string).err();
            error.is_some_and(|error| error.contains("wrong number of arguments"))
        };
        let found = ALL.into_iter().zip(replies).find(|(_, reply)| known(reply));
        Ok(found.map(|(name, _)| Self { name, refused: AtomicBool::default() }))
    }

    /// Returns the command that deletes a claim's lock if it has the claim's value; `None` if a
    /// script of two calls must do it.
    pub(super) fn command(&self, release: &ReleaseRequest) -> Option<Cmd> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let mut delete = self.name.command();
        delete.arg(release.claim.key().name());
        if self.name == Name::Delex {
            delete.arg("IFEQ");
        }
        delete.arg(release.claim.value());
        Some(delete)
    }

    /// Reads the reply; `None` if a script of two calls must do it.
    pub(super) fn read(&self, deleted: RedisResult<Value>) -> RedisResult<Option<Deleted>> {
        match deleted {
            Ok(deleted) => deletion(&deleted).map(Some),
            Err(error) => self.outcome_of_error(error),
        }
    }

    /// Decides whether a script can do what this error refused.
    fn outcome_of_error(&self, error: RedisError) -> RedisResult<Option<Deleted>> {
        let text = error.to_string();
        // As worded by Valkey, and by Redis.
        if is_sent_on(&error) || error.code() == Some("WRONGTYPE") || text.contains("string type") {
            return Ok(Some(Deleted::NeedsScript));
        }
        let forbidden = error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm);
        let odd = error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError);
        if forbidden || odd {
            self.refused.store(true, Ordering::Relaxed);
        }
        // A proxy may have switched to another server unnoticed.
        if forbidden || (odd && text.contains("unknown command")) {
            return Ok(None);
        }
        Err(error)
    }
}

/// Returns whether this server did nothing and another server must; the script finds out which.
pub(super) fn is_sent_on(error: &RedisError) -> bool {
    let kinds = [
        ServerErrorKind::Moved,
        ServerErrorKind::Ask,
        ServerErrorKind::TryAgain,
        ServerErrorKind::ClusterDown,
        ServerErrorKind::MasterDown,
        ServerErrorKind::ReadOnly,
    ];
    kinds.map(ErrorKind::Server).contains(&error.kind())
}

/// Reads the reply to a deletion.
pub(super) fn deletion(deleted: &Value) -> RedisResult<Deleted> {
    match deleted {
        Value::Int(1) => Ok(Deleted::Done),
        Value::Int(_) => Ok(Deleted::NeedsScript),
        _ => Err((ErrorKind::UnexpectedReturnType, "no reply to a deletion").into()),
    }
}

impl Name {
    fn command(self) -> Cmd {
        redis::cmd(match self {
            Self::Delex => "DELEX",
            Self::Delifeq => "DELIFEQ",
            Self::Cad => "CAD",
        })
    }
}

type Reply = Result<Value, RedisError>;

async fn all_replies(
    pipe: &mut Pipeline,
    connection: &mut MultiplexedConnection,
) -> RedisResult<Vec<Reply>> {
    pipe.ignore_errors().query_async(connection).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the 1 in `deletion`.
    #[test]
    fn only_a_one_says_that_it_was_ours() {
        assert_eq!(deletion(&Value::Int(1)).unwrap(), Deleted::Done);
        for other in [Value::Int(0), Value::Int(2)] {
            assert_eq!(deletion(&other).unwrap(), Deleted::NeedsScript, "{other:?}");
        }
        for odd in [Value::Nil, Value::Okay] {
            deletion(&odd).unwrap_err();
        }
    }
}
