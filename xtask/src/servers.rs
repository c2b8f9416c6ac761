//! The servers that tests start: one row each, and how they get onto a machine.

use std::path::PathBuf;

use crate::{child, install};

/// A server program that the tests cannot do without.
struct Server {
    /// Its name on the `PATH`, or in one of [`directories`].
    program: &'static str,
    /// What it answers if all of it is there.
    asked: &'static [&'static str],
    /// The environment variable by which the harness is given another.
    variable: &'static str,
    /// The package that brings it, in Debian and its descendants.
    package: &'static str,
}

/// Names the program that speaks the protocol of Redis.
pub(crate) const REDIS: &str = "LOCKATTR_REDIS_SERVER";

/// Names the program that speaks the protocol of MySQL.
pub(crate) const MARIADB: &str = "LOCKATTR_MARIADB_SERVER";

/// Names the program of PostgreSQL, beside which the others are.
pub(crate) const POSTGRES: &str = "LOCKATTR_POSTGRES";

const VERSION: &[&str] = &["--version"];

const SERVERS: &[Server] = &[
    Server { program: "redis-server", asked: VERSION, variable: REDIS, package: "redis-server" },
    Server { program: "postgres", asked: VERSION, variable: POSTGRES, package: "postgresql" },
    Server {
        program: "pgbouncer",
        asked: VERSION,
        variable: "LOCKATTR_PGBOUNCER",
        package: "pgbouncer",
    },
    Server { program: "mariadbd", asked: VERSION, variable: MARIADB, package: "mariadb-server" },
    Server {
        program: "java",
        asked: &[
            "-cp",
            "/usr/share/java/zookeeper.jar",
            "org.apache.zookeeper.version.VersionInfoMain",
        ],
        variable: "LOCKATTR_JAVA",
        package: "zookeeper",
    },
    Server { program: "etcd", asked: VERSION, variable: "LOCKATTR_ETCD", package: "etcd-server" },
    // By it the tests look into etcd.
    Server {
        program: "etcdctl",
        asked: &["version"],
        variable: "LOCKATTR_ETCDCTL",
        package: "etcd-client",
    },
];

/// Installs what is missing. An error says what to do by hand.
pub(crate) fn ensure_all() -> Result<(), String> {
    let missing = missing()?;
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|server| server.package).collect();
    install::install(&packages)?;
    for server in missing {
        if !server.is_there() {
            let Server { program, asked, package, .. } = server;
            let asked = asked.join(" ");
            return Err(format!("{package} is installed, and yet `{program} {asked}` fails"));
        }
    }
    Ok(())
}

fn missing() -> Result<Vec<&'static Server>, String> {
    let mut missing = Vec::new();
    for server in SERVERS {
        match std::env::var(server.variable) {
            // What somebody chose is not replaced by something else.
            Ok(chosen) if !child::succeeds(&chosen, server.asked) => {
                let asked = server.asked.join(" ");
                return Err(format!("{}: `{chosen} {asked}` fails", server.variable));
            }
            Ok(_) => {}
            Err(_) if server.is_there() => {}
            Err(_) => missing.push(server),
        }
    }
    Ok(missing)
}

impl Server {
    fn is_there(&self) -> bool {
        let beside = directories().into_iter().map(|directory| directory.join(self.program));
        child::succeeds(self.program, self.asked)
            || beside.filter(|path| path.exists()).any(|path| child::succeeds(path, self.asked))
    }
}

/// Where packages put servers beside the `PATH`: what only root's looks into, and one for each
/// version of PostgreSQL.
fn directories() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = versions.map(|version| version.path().join("bin"));
    versions.chain([PathBuf::from("/usr/sbin")]).collect()
}
