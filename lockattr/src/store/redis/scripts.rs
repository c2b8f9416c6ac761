//! The scripts, each a file beside this one with its arguments in its first comment.

use redis::Script;
use redis::aio::MultiplexedConnection;

pub(super) struct Scripts {
    pub(super) acquire: Script,
    pub(super) renew: Script,
    pub(super) release: Script,
    pub(super) holder: Script,
    /// These two are loaded when they are first needed: no program that only locks needs them.
    pub(super) survey: Script,
    pub(super) evict: Script,
}

/// A script of several files, one after another.
macro_rules! script {
    ($($file:literal),*) => {
        Script::new(concat!($(include_str!($file)),*))
    };
}

impl Scripts {
    /// For one server.
    #[rustfmt::skip] // each in one line, where the tests look for them
    pub(super) fn new() -> Self {
        Self {
            acquire: script!("count.lua", "acquire_free.lua", "publish.lua", "queue.lua", "acquire.lua"),
            renew: script!("count.lua", "publish.lua", "queue.lua", "renew.lua"),
            release: script!("count.lua", "release_alone.lua", "publish.lua", "queue.lua", "release.lua"),
            holder: script!("count.lua", "publish.lua", "queue.lua", "holder.lua"),
            survey: script!("count.lua", "publish.lua", "queue.lua", "survey.lua"),
            evict: script!("count.lua", "publish.lua", "queue.lua", "evict.lua"),
        }
    }

    /// For the nodes of a cluster.
    #[rustfmt::skip] // as above
    pub(super) fn of_a_cluster() -> Self {
        Self {
            acquire: script!("count.lua", "acquire_free.lua", "spublish.lua", "queue.lua", "acquire.lua"),
            renew: script!("count.lua", "spublish.lua", "queue.lua", "renew.lua"),
            release: script!("count.lua", "release_alone.lua", "spublish.lua", "queue.lua", "release.lua"),
            holder: script!("count.lua", "spublish.lua", "queue.lua", "holder.lua"),
            survey: script!("count.lua", "spublish.lua", "queue.lua", "survey.lua"),
            evict: script!("count.lua", "spublish.lua", "queue.lua", "evict.lua"),
        }
    }

    /// Loads those that every program needs in one trip. Where the server forgets one later, the client loads it
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
