//! One run of a script.

use redis::aio::MultiplexedConnection;
use redis::{
    Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, Script, ServerErrorKind, ToRedisArgs,
};

/// A script and what goes into it.
///
/// Written as one command from the first word on: the client's own `ScriptInvocation` makes a copy
/// of each word before, which is a tenth of what an acquire computes.
pub(super) struct Call<'a> {
    script: &'a Script,
    command: Cmd,
}

impl<'a> Call<'a> {
    /// A call with so many keys, whose words are about so many bytes altogether.
    pub(super) fn new(script: &'a Script, keys: usize, bytes: usize) -> Self {
        // The command, the digest, the number of keys, and an argument or two for each key.
        let mut command = Cmd::with_capacity(3 * (keys + 3), bytes + 64);
        command.arg("EVALSHA").arg(script.get_hash()).arg(keys);
        Self { script, command }
    }

    /// The next key, or, behind the last of them, the next argument.
    pub(super) fn arg(&mut self, word: impl ToRedisArgs) -> &mut Self {
        self.command.arg(word);
        self
    }

    /// What is sent, where several commands go together.
    pub(super) fn command(&self) -> &Cmd {
        &self.command
    }

    /// The same, which alone is needed where the server knows the script.
    pub(super) fn into_command(self) -> Cmd {
        self.command
    }

    /// Loads the script where the server does not know it.
    pub(super) async fn load(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        // Not by the client's `load_async`, which panics in debug builds at any answer but the digest.
        redis::pipe().load_script(self.script).ignore().query_async(connection).await
    }

    /// Runs the script by its digest, and loads it where the server does not know it.
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

/// Whether the server does not know the script.
pub(super) fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
