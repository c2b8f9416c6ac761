//! The scripts, each a file beside this one with its arguments in its first comment.

use redis::Script;
use redis::aio::MultiplexedConnection;

pub(super) struct Scripts {
    pub(super) acquire: Script,
    pub(super) renew: Script,
    pub(super) release: Script,
    /// The release of the free path, for servers without a compare-and-delete of their own.
    pub(super) delete: Script,
    pub(super) holder: Script,
    /// These two are loaded when they are first needed: no program that only locks needs them.
    pub(super) held_locks: Script,
    pub(super) force_release: Script,
}

/// A script of several files, one after another.
macro_rules! script {
    ($($file:literal),*) => {
        Script::new(concat!($(include_str!($file)),*))
    };
}

/// The scripts of a server that publishes by this file.
#[rustfmt::skip] // each in one line, where the tests look for them
macro_rules! scripts {
    ($publish:literal) => {
        Self {
            acquire: script!("head.lua", "enter.lua", "count.lua", $publish, "lock.lua", "acquire_one.lua", "lease.lua", "holders.lua", "queue.lua", "acquire.lua"),
            renew: script!("head.lua", "count.lua", $publish, "lock.lua", "lease.lua", "holders.lua", "queue.lua", "renew.lua"),
            release: script!("head.lua", "count.lua", $publish, "lease.lua", "release_one.lua", "lock.lua", "holders.lua", "queue.lua", "release.lua"),
            delete: script!("delete.lua"),
            holder: script!("head.lua", "count.lua", $publish, "lock.lua", "holders.lua", "holder.lua"),
            held_locks: script!("head.lua", "count.lua", $publish, "lock.lua", "holders.lua", "held_locks.lua"),
            force_release: script!("head.lua", "count.lua", $publish, "lock.lua", "lease.lua", "holders.lua", "queue.lua", "force_release.lua"),
        }
    };
}

impl Scripts {
    /// For one server.
    pub(super) fn new() -> Self {
        scripts!("publish.lua")
    }

    /// For the nodes of a cluster.
    pub(super) fn of_a_cluster() -> Self {
        scripts!("spublish.lua")
    }

    /// Loads those that every program needs in one trip. Where the server forgets one later, the client loads it
    /// again; loaded here, the first call of each is one command, and so keeps its place among
    /// those for the same key.
    pub(super) async fn load(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> redis::RedisResult<()> {
        let mut load = redis::pipe();
        for script in [&self.acquire, &self.renew, &self.release, &self.delete, &self.holder] {
            load.load_script(script).ignore();
        }
        load.query_async(connection).await
    }
}
