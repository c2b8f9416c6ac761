//! The Lua scripts. The file with a script's name begins with a comment about its arguments.

use redis::Script;
use redis::aio::MultiplexedConnection;

pub(super) struct Scripts {
    pub(super) acquire: Script,
    pub(super) renew: Script,
    pub(super) release: Script,
    /// The release of the free path, for servers without a compare-and-delete of their own.
    pub(super) delete: Script,
    pub(super) holder: Script,
    /// These are loaded when first needed, because a program that only locks does not need them.
    pub(super) held_locks: Script,
    pub(super) force_release: Script,
    pub(super) mark_done: Script,
    /// Whether they are for the nodes of a cluster.
    pub(super) for_a_cluster: bool,
}

/// Concatenates files into a script.
macro_rules! script {
    ($($file:literal),*) => {
        Script::new(concat!($(include_str!($file)),*))
    };
}

/// The scripts of a server that publishes with this file.
#[rustfmt::skip] // one line each, because tests parse them
macro_rules! scripts {
    ($publish:literal, $for_a_cluster:literal) => {
        Self {
            acquire: script!("head.lua", "enter.lua", "count.lua", $publish, "lock.lua", "acquire_one.lua", "lease.lua", "holders.lua", "queue.lua", "acquire.lua"),
            renew: script!("head.lua", "count.lua", $publish, "lock.lua", "lease.lua", "holders.lua", "queue.lua", "renew.lua"),
            release: script!("head.lua", "count.lua", $publish, "lease.lua", "release_one.lua", "lock.lua", "holders.lua", "queue.lua", "release.lua"),
            delete: script!("delete.lua"),
            holder: script!("head.lua", "count.lua", $publish, "lock.lua", "holders.lua", "holder.lua"),
            held_locks: script!("head.lua", "count.lua", $publish, "lock.lua", "holders.lua", "held_locks.lua"),
            force_release: script!("head.lua", "count.lua", $publish, "lock.lua", "lease.lua", "holders.lua", "queue.lua", "force_release.lua"),
            mark_done: script!("head.lua", "count.lua", $publish, "lock.lua", "holders.lua", "mark_done.lua"),
            for_a_cluster: $for_a_cluster,
        }
    };
}

impl Scripts {
    /// Returns the scripts for a single server.
    pub(super) fn new() -> Self {
        scripts!("publish.lua", false)
    }

    /// Returns the scripts for the nodes of a cluster.
    pub(super) fn of_a_cluster() -> Self {
        scripts!("spublish.lua", true)
    }

    /// Loads the scripts that every program needs, in one round trip. If the server forgets one
    /// later, the client loads it again. Loaded here, the first call of each is one command, and
    /// keeps its place among those for the same key.
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
