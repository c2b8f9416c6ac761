//! The server's own compare-and-delete, where it has one: the release of the free path.
//!
//! It costs the server a third of a script. A renewal has no such way: `SET … IFEQ … PX` would shorten a lease that
//! `extend` has made longer, if it comes behind that.

use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};

use crate::store::ReleaseRequest;

/// The command of a server, at the end of one connection, that deletes a key if it has this value.
pub(super) struct Native {
    name: Name,
    /// This user may not run it, or the server says something unheard of.
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

/// What became of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deleted {
    /// It was the claim's, and no process waits for it.
    Done,
    /// Its value is another one: it was lost, or claims wait for it. The script has to say.
    AskTheScript,
}

impl Native {
    /// Which of them the server has. Each is asked for without its arguments, which a server that
    /// has it finds wrong before it looks at rights, at memory, or at whether writes are paused.
    pub(super) async fn find(connection: &mut MultiplexedConnection) -> RedisResult<Option<Self>> {
        let mut tries = redis::pipe();
        for name in ALL {
            tries.add_command(name.command());
        }
        let tried = all_replies(&mut tries, connection).await?;
        let known = |tried: &Reply| {
            let error = tried.as_ref().map_err(ToString::to_string).err();
            error.is_some_and(|error| error.contains("wrong number of arguments"))
        };
        let found = ALL.into_iter().zip(tried).find(|(_, tried)| known(tried));
        Ok(found.map(|(name, _)| Self { name, refused: AtomicBool::default() }))
    }

    /// The command that deletes the lock of a claim if it has the claim's value; `None` if a script of two calls has
    /// to.
    pub(super) fn command(&self, releasing: &ReleaseRequest) -> Option<Cmd> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let mut delete = self.name.command();
        delete.arg(releasing.claim.key().name());
        if self.name == Name::Delex {
            delete.arg("IFEQ");
        }
        delete.arg(releasing.claim.value());
        Some(delete)
    }

    /// What it answered; `None` if a script of two calls has to.
    pub(super) fn read(&self, deleted: RedisResult<Value>) -> RedisResult<Option<Deleted>> {
        match deleted {
            Ok(deleted) => Ok(Some(deletion(&deleted))),
            Err(error) => self.is_no_answer(error),
        }
    }

    /// Whether the script can do better than this error.
    fn is_no_answer(&self, error: RedisError) -> RedisResult<Option<Deleted>> {
        let text = error.to_string();
        // In the words of Valkey, and in those of Redis.
        if is_sent_on(&error) || error.code() == Some("WRONGTYPE") || text.contains("string type") {
            return Ok(Some(Deleted::AskTheScript));
        }
        let forbidden = error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm);
        let odd = error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError);
        if forbidden || odd {
            self.refused.store(true, Ordering::Relaxed);
        }
        // What lies between us and the server may pass on to another one without our knowing.
        if forbidden || (odd && text.contains("unknown command")) {
            return Ok(None);
        }
        Err(error)
    }
}

/// Whether another server is to be asked, and this one did nothing: the script finds out which.
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

/// What the answer to a deletion comes to.
pub(super) fn deletion(deleted: &Value) -> Deleted {
    match deleted {
        Value::Int(1) => Deleted::Done,
        _ => Deleted::AskTheScript,
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

    /// Red without: the one in `deletion`.
    #[test]
    fn only_a_one_says_that_it_was_ours() {
        assert_eq!(deletion(&Value::Int(1)), Deleted::Done);
        for odd in [Value::Int(0), Value::Int(2), Value::Nil, Value::Okay] {
            assert_eq!(deletion(&odd), Deleted::AskTheScript, "{odd:?}");
        }
    }
}
