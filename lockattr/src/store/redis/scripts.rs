//! The scripts, each a file beside this one with its arguments in its first comment.

use redis::Script;
use redis::aio::MultiplexedConnection;

pub(super) struct Scripts {
    pub(super) acquire: Script,
    pub(super) renew: Script,
    pub(super) release: Script,
    pub(super) holder: Script,
}

/// What they share stands before each of them.
macro_rules! script {
    ($file:literal) => {
        Script::new(concat!(include_str!("line.lua"), include_str!($file)))
    };
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            acquire: script!("acquire.lua"),
            renew: script!("renew.lua"),
            release: script!("release.lua"),
            holder: script!("holder.lua"),
        }
    }

    /// Loads all of them in one trip. Where the server forgets one later, the client loads it
    /// again; loaded here, the first call of each is one command, and so keeps its place among
    /// those for the same key.
    pub(super) async fn load(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> redis::RedisResult<()> {
        let mut load = redis::pipe();
        for script in [&self.acquire, &self.renew, &self.release, &self.holder] {
            load.load_script(script).ignore();
        }
        load.query_async(connection).await
    }
}
