//! One call of a script.

use redis::aio::MultiplexedConnection;
use redis::{
    Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, Script, ServerErrorKind, ToRedisArgs,
};

use crate::store::Claim;

/// A script and its arguments.
///
/// Built as one command: the client's own `ScriptInvocation` would first copy each word, which is a
/// tenth of an acquisition's computation.
pub(super) struct Call<'a> {
    script: &'a Script,
    command: Cmd,
    /// For which it acquires locks.
    claim: Option<&'a Claim>,
}

impl<'a> Call<'a> {
    /// Starts a call with this many keys. `bytes` is the approximate length of all its words.
    pub(super) fn new(script: &'a Script, keys: usize, bytes: usize) -> Self {
        // The command, the digest, the number of keys, and an argument or two for each key.
        let mut command = Cmd::with_capacity(3 * (keys + 3), bytes + 64);
        command.arg("EVALSHA").arg(script.get_hash()).arg(keys);
        Self { script, command, claim: None }
    }

    /// Says for which claim it acquires locks.
    pub(super) fn acquires(&mut self, claim: &'a Claim) {
        self.claim = Some(claim);
    }

    /// Notes that it is sent now.
    pub(super) fn departs(&self) {
        self.claim.into_iter().for_each(Claim::departs);
    }

    /// Appends the next key or, behind the last key, the next argument.
    pub(super) fn arg(&mut self, argument: impl ToRedisArgs) -> &mut Self {
        self.command.arg(argument);
        self
    }

    /// Returns the command, to be sent together with others.
    pub(super) fn command(&self) -> &Cmd {
        &self.command
    }

    /// Returns the command alone, for a server that knows the script.
    pub(super) fn into_command(self) -> Cmd {
        self.command
    }

    /// Loads the script into the server.
    pub(super) async fn load(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        // The client's `load_async` panics in debug builds if the reply is not the digest.
        redis::pipe().load_script(self.script).ignore().query_async(connection).await
    }

    /// Runs the script by its digest, and loads it if the server does not know it.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<T> {
        match self.command.query_async(connection).await {
            Err(error) if is_unknown(&error) => {
                self.load(connection).await?;
                self.command.query_async(connection).await
            }
            outcome => outcome,
        }
    }
}

/// Returns whether the server does not know the script.
pub(super) fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
