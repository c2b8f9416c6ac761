//! The servers for the rows about Redis, one after another: the default one, and the newest Redis
//! and Valkey.
//!
//! The environment variables of the tests name them. Without a variable, the newest two are those
//! that `cargo xtask test` unpacks into `target/servers/`.

use std::path::{Path, PathBuf};

use lockattr_tests::RedisServer;

use crate::report::Report;

/// Where `cargo xtask test` unpacks the newest servers.
const UNPACKED: &str = "../target/servers/redis";

/// Commands that delete a key if it has a certain value: of Redis 8.4 and of Valkey 9.0.
const COMPARE_AND_DELETE: [&str; 2] = ["DELEX", "DELIFEQ"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// `redis-server` on the `PATH`, or what `LOCKATTR_REDIS_SERVER` names.
    Usual,
    NewestRedis,
    NewestValkey,
}

pub(crate) struct Started {
    pub(crate) server: RedisServer,
    /// Such as `Redis 7.0`.
    pub(crate) name: String,
    /// Whether it can delete by value without a script, which some bars depend on.
    pub(crate) deletes_by_value: bool,
}

impl Engine {
    pub(crate) const ALL: [Self; 3] = [Self::Usual, Self::NewestRedis, Self::NewestValkey];

    /// Starts a server and names it in the report; `None` if the program is missing, which the
    /// report also mentions.
    pub(crate) async fn start(self, report: &mut Report) -> Option<Started> {
        let mut wishes = RedisServer::builder();
        if let Some((variable, program)) = self.program() {
            if !program.exists() {
                let (program, who) = (program.display(), self.called());
                report.no_server(&format!("{who}: {program} not found (or set {variable})"));
                return None;
            }
            wishes = wishes.program(program);
        }
        let started = Started::look(wishes.start().await).await;
        report.server(&started.name);
        Some(started)
    }

    fn called(self) -> &'static str {
        match self {
            Self::Usual => "the usual Redis",
            Self::NewestRedis => "the newest Redis",
            Self::NewestValkey => "the newest Valkey",
        }
    }

    /// The variable that names the program, and the default program; `None` for the default server.
    fn program(self) -> Option<(&'static str, PathBuf)> {
        let (variable, name) = match self {
            Self::Usual => return None,
            Self::NewestRedis => ("LOCKATTR_NEWEST_REDIS", "redis-server"),
            Self::NewestValkey => ("LOCKATTR_NEWEST_VALKEY", "valkey-server"),
        };
        let unpacked = || Path::new(env!("CARGO_MANIFEST_DIR")).join(UNPACKED).join(name);
        Some((variable, std::env::var_os(variable).map_or_else(unpacked, PathBuf::from)))
    }
}

impl Started {
    /// Asks the server for its kind and version.
    async fn look(server: RedisServer) -> Self {
        let cli = server.cli().await;
        let text: String = cli.query(&["INFO", "server"]).await;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        // Valkey also reports a Redis version.
        let valkey = field("valkey_version:").map(|version| ("Valkey", version));
        let redis = || ("Redis", field("redis_version:").unwrap_or("?"));
        let (kind, version) = valkey.unwrap_or_else(redis);
        let version: Vec<&str> = version.trim().split('.').take(2).collect();
        let mut deletes_by_value = false;
        for command in COMPARE_AND_DELETE {
            // The answer for an unknown command is empty.
            let known: Vec<Option<redis::Value>> = cli.query(&["COMMAND", "INFO", command]).await;
            deletes_by_value |= known.iter().flatten().next().is_some();
        }
        Self { server, name: format!("{kind} {}", version.join(".")), deletes_by_value }
    }

    /// Selects the bar: `with` for servers that delete by value without a script, else `without`.
    pub(crate) fn bar<T>(&self, with: T, without: T) -> T {
        if self.deletes_by_value { with } else { without }
    }
}
