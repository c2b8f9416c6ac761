//! A release without a script, where the server has a command that compares and deletes.
//!
//! The usual case of `release.lua` costs the server a third then. Whether others wait is asked
//! behind it, in the same trip; only if so, the script is run as well, and hands the lock on. In
//! between it lies free, which does no harm: whoever finds it so serves its line. A renewal has no
//! such way: `SET … IFEQ … PX` would shorten a lease that `extend` has made longer, if it comes
//! behind that.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};

use super::FENCE;
use super::request::line_of;
use crate::store::{Releasing, Sharing};

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
    /// It was ours, and nobody waits for it.
    Done,
    /// It was ours, and is to be handed on.
    HandOn,
    /// It was not, and nobody waits for it.
    NotHeld,
    /// The script has to say.
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

    /// Gives a lock back that [`suits`].
    pub(super) async fn release(
        &self,
        connection: &mut MultiplexedConnection,
        releasing: &Releasing,
    ) -> RedisResult<Deleted> {
        if self.refused.load(Ordering::Relaxed) {
            return Ok(Deleted::AskTheScript);
        }
        let (lock, value) = (releasing.claim.key().name(), releasing.claim.value());
        let mut delete = self.name.command();
        delete.arg(lock);
        if self.name == Name::Delex {
            delete.arg("IFEQ");
        }
        delete.arg(value);
        let mut both = redis::pipe();
        both.add_command(delete).cmd("EXISTS").arg(line_of(lock, FENCE));
        let mut replies = all_replies(&mut both, connection).await?.into_iter();
        let deleted = match replies.next() {
            Some(Ok(deleted)) => deleted,
            Some(Err(error)) => return self.is_no_answer(error),
            None => return Ok(Deleted::AskTheScript),
        };
        Ok(deletion(&deleted, replies.next().and_then(Result::ok).as_ref()))
    }

    /// Whether the script can do better than this error.
    fn is_no_answer(&self, error: RedisError) -> RedisResult<Deleted> {
        let text = error.to_string();
        // In the words of Valkey, and in those of Redis.
        if error.code() == Some("WRONGTYPE") || text.contains("string type") {
            return Ok(Deleted::AskTheScript);
        }
        let forbidden = error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm);
        let odd = error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError);
        if forbidden || odd {
            self.refused.store(true, Ordering::Relaxed);
        }
        // What lies between us and the server may pass on to another one without our knowing.
        if forbidden || (odd && text.contains("unknown command")) {
            return Ok(Deleted::AskTheScript);
        }
        Err(error)
    }
}

/// What the answers to the deletion, and to whether there is a line, come to.
pub(super) fn deletion(deleted: &Value, line: Option<&Value>) -> Deleted {
    let nobody_waits = line == Some(&Value::Int(0));
    match (deleted, nobody_waits) {
        (Value::Int(1), true) => Deleted::Done,
        (Value::Int(1), false) => Deleted::HandOn,
        (Value::Int(0), true) => Deleted::NotHeld,
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

/// Whether it is the usual case: one lock, which a claim alone has that does not stand in line, and
/// which becomes free at once.
pub(super) fn suits(releasing: &Releasing) -> bool {
    let Releasing { claim, after, quietly } = releasing;
    let alone = claim.sharing() == Sharing::Exclusive && claim.keys().len() == 1;
    alone && !quietly && claim.in_line().is_none() && after.is_zero()
}

type Reply = Result<Value, RedisError>;

async fn all_replies(
    pipe: &mut Pipeline,
    connection: &mut MultiplexedConnection,
) -> RedisResult<Vec<Reply>> {
    pipe.ignore_errors().query_async(connection).await
}

/// Locks for which others have been seen to wait: their next releases had better be scripts, which
/// hand on in one trip. A hint: two names may share a place, and nothing but speed depends on it.
pub(super) struct Sought([AtomicU8; 256]);

/// So often a lock is given back by a script after somebody was seen to wait for it.
const REMEMBERED: u8 = 8;

impl Default for Sought {
    fn default() -> Self {
        Self([const { AtomicU8::new(0) }; 256])
    }
}

impl Sought {
    pub(super) fn note(&self, lock: &str) {
        self.place(lock).store(REMEMBERED, Ordering::Relaxed);
    }

    /// Whether somebody probably waits; counts as one release.
    pub(super) fn probably(&self, lock: &str) -> bool {
        let less = |left: u8| left.checked_sub(1);
        self.place(lock).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn place(&self, lock: &str) -> &AtomicU8 {
        let mut hasher = DefaultHasher::new();
        lock.hash(&mut hasher);
        // Smaller than the table.
        &self.0[(hasher.finish() % 256) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the zero in `deletion`.
    #[test]
    fn only_a_zero_says_that_it_was_not_ours() {
        let nobody_waits = Some(&Value::Int(0));
        assert_eq!(deletion(&Value::Int(0), nobody_waits), Deleted::NotHeld);
        for odd in [Value::Nil, Value::Int(2), Value::Okay] {
            assert_eq!(deletion(&odd, nobody_waits), Deleted::AskTheScript);
            assert_eq!(deletion(&Value::Int(1), Some(&odd)), Deleted::HandOn);
        }
    }

    #[test]
    fn a_sought_lock_is_remembered_for_a_few_releases() {
        let sought = Sought::default();
        assert!(!sought.probably("a"));
        sought.note("a");
        let remembered = (0..100).take_while(|_| sought.probably("a")).count();
        assert_eq!(remembered, usize::from(REMEMBERED));
    }
}
