//! The table of servers that tests start, and their installation.

use std::path::PathBuf;

use crate::{child, install};

/// A program that the tests need.
struct Server {
    /// Its name on the `PATH`, or in one of [`directories`].
    program: &'static str,
    /// The arguments with which it succeeds if it is completely installed.
    arguments: &'static [&'static str],
    /// The environment variable that names another program for the harness.
    variable: &'static str,
    /// Its package in Debian and derivatives.
    package: &'static str,
}

/// The environment variable that names a server with the protocol of Redis.
pub(crate) const REDIS: &str = "LOCKATTR_REDIS_SERVER";

/// The environment variable that names a server with the protocol of MySQL.
pub(crate) const MARIADB: &str = "LOCKATTR_MARIADB_SERVER";

/// The environment variable that names the `postgres` whose directory has PostgreSQL's programs.
pub(crate) const POSTGRES: &str = "LOCKATTR_POSTGRES";

const VERSION: &[&str] = &["--version"];

const SERVERS: &[Server] = &[
    Server {
        program: "redis-server",
        arguments: VERSION,
        variable: REDIS,
        package: "redis-server",
    },
    Server { program: "postgres", arguments: VERSION, variable: POSTGRES, package: "postgresql" },
    Server {
        program: "pgbouncer",
        arguments: VERSION,
        variable: "LOCKATTR_PGBOUNCER",
        package: "pgbouncer",
    },
    Server {
        program: "mariadbd",
        arguments: VERSION,
        variable: MARIADB,
        package: "mariadb-server",
    },
    Server {
        program: "java",
        arguments: &[
            "-cp",
            "/usr/share/java/zookeeper.jar",
            "org.apache.zookeeper.version.VersionInfoMain",
        ],
        variable: "LOCKATTR_JAVA",
        package: "zookeeper",
    },
    Server {
        program: "etcd",
        arguments: VERSION,
        variable: "LOCKATTR_ETCD",
        package: "etcd-server",
    },
    // The shop's alerts are tried with it. The package includes promtool.
    Server {
        program: "prometheus",
        arguments: VERSION,
        variable: "LOCKATTR_PROMETHEUS",
        package: "prometheus",
    },
    // The tests inspect etcd with it.
    Server {
        program: "etcdctl",
        arguments: &["version"],
        variable: "LOCKATTR_ETCDCTL",
        package: "etcd-client",
    },
];

/// Installs the missing servers. The error says how to install them by hand.
pub(crate) fn ensure_all() -> Result<(), String> {
    let missing = missing()?;
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|server| server.package).collect();
    install::install(&packages)?;
    for server in missing {
        if !server.is_installed() {
            let Server { program, arguments, package, .. } = server;
            let arguments = arguments.join(" ");
            return Err(format!("{package} is installed, but `{program} {arguments}` fails"));
        }
    }
    Ok(())
}

fn missing() -> Result<Vec<&'static Server>, String> {
    let mut missing = Vec::new();
    for server in SERVERS {
        match std::env::var(server.variable) {
            // A program that the user chose is not replaced by another.
            Ok(chosen) if !child::succeeds(&chosen, server.arguments) => {
                let arguments = server.arguments.join(" ");
                return Err(format!("{}: `{chosen} {arguments}` fails", server.variable));
            }
            Ok(_) => {}
            Err(_) if server.is_installed() => {}
            Err(_) => missing.push(server),
        }
    }
    Ok(missing)
}

impl Server {
    fn is_installed(&self) -> bool {
        let candidates = directories().into_iter().map(|directory| directory.join(self.program));
        child::succeeds(self.program, self.arguments)
            || candidates
                .filter(|path| path.exists())
                .any(|path| child::succeeds(path, self.arguments))
    }
}

/// Returns the directories outside the `PATH` where packages install servers: one that only root's
/// `PATH` has, and one for each version of PostgreSQL.
fn directories() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = versions.map(|version| version.path().join("bin"));
    versions.chain([PathBuf::from("/usr/sbin")]).collect()
}
