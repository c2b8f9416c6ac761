//! The newest servers in Debian, beside the system's own: unpacks their packages into
//! `target/servers/`, without installing them.

mod kind;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{child, install, servers};
use kind::Kind;

const SCRIPT: &str = include_str!("newest.sh");

/// Older packages are downloaded again.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Servers that are downloaded together.
struct Group {
    /// Their name in the script, and their directory in `target/servers/`.
    name: &'static str,
    servers: &'static [Server],
}

struct Server {
    display_name: &'static str,
    program: &'static str,
    /// The environment variable that names the server for the tests that need it.
    variable: &'static str,
    /// The environment variable that makes all tests use it.
    chosen_by: &'static str,
    kind: Kind,
}

const GROUPS: [Group; 2] = [
    Group {
        name: "redis",
        servers: &[
            Server {
                display_name: "Redis",
                program: "redis-server",
                variable: "LOCKATTR_NEWEST_REDIS",
                chosen_by: servers::REDIS,
                kind: kind::REDIS,
            },
            Server {
                display_name: "Valkey",
                program: "valkey-server",
                variable: "LOCKATTR_NEWEST_VALKEY",
                chosen_by: servers::REDIS,
                kind: kind::REDIS,
            },
        ],
    },
    Group {
        name: "sql",
        servers: &[
            Server {
                display_name: "MySQL",
                program: "mysqld",
                variable: "LOCKATTR_NEWEST_MYSQL",
                chosen_by: servers::MARIADB,
                kind: kind::MYSQL,
            },
            Server {
                display_name: "PostgreSQL",
                program: "postgres",
                variable: "LOCKATTR_NEWEST_POSTGRES",
                chosen_by: servers::POSTGRES,
                kind: kind::POSTGRES,
            },
        ],
    },
];

/// A server program that is newer than the system's.
pub(crate) struct Newest {
    server: &'static Server,
    pub(crate) program: PathBuf,
    /// The version that it reports.
    pub(crate) version: String,
}

impl Newest {
    /// The environment variable for the tests, and its value.
    pub(crate) fn named(&self) -> (&'static str, &Path) {
        (self.server.variable, &self.program)
    }

    /// The environment variable that makes all tests use it.
    pub(crate) fn chosen_by(&self) -> &'static str {
        self.server.chosen_by
    }

    /// The tests that start a server of its kind, as filters of the test program.
    pub(crate) fn filters(&self) -> Vec<&'static str> {
        self.server.kind.filters()
    }
}

/// Each newest server, or why it is not available.
pub(crate) fn obtain() -> Vec<Result<Newest, String>> {
    GROUPS.iter().flat_map(Group::obtain).collect()
}

impl Group {
    fn obtain(&'static self) -> Vec<Result<Newest, String>> {
        let directory = child::root().join("target/servers").join(self.name);
        let old = self.installed(&directory);
        let usable = old.iter().all(Result::is_ok);
        let found = if usable && self.is_fresh(&directory) {
            old
        } else {
            match self.download(&directory) {
                Ok(()) => self.installed(&directory),
                // Last week's packages are better than none.
                Err(_) if usable => old,
                Err(reason) => self
                    .servers
                    .iter()
                    .map(|it| Err(format!("{}: {reason}", it.display_name)))
                    .collect(),
            }
        };
        found.into_iter().map(|newest| newest.and_then(check_access)).collect()
    }

    fn installed(&'static self, directory: &Path) -> Vec<Result<Newest, String>> {
        let found = self.servers.iter().map(|server| {
            let program = directory.join(server.program);
            let output = Command::new(&program).arg("--version").output();
            match output {
                Ok(output) if output.status.success() => {
                    let text = String::from_utf8_lossy(&output.stdout);
                    // `Redis server v=8.6.3 sha=…`, `/…/mysqld  Ver 9.7.4 for Linux …`
                    let version = text.split(" sha=").next().unwrap_or_default();
                    let version = version.rsplit('/').next().unwrap_or_default().trim().to_owned();
                    Ok(Newest { server, program, version })
                }
                _ => {
                    Err(format!("{}: `{} --version` fails", server.display_name, program.display()))
                }
            }
        });
        found.collect()
    }

    fn is_fresh(&self, directory: &Path) -> bool {
        let written = |server: &Server| directory.join(server.program).metadata()?.modified();
        self.servers.iter().all(|server| {
            let age = written(server).ok().and_then(|written| written.elapsed().ok());
            age.is_some_and(|age| age < MAX_AGE)
        })
    }

    fn download(&self, directory: &Path) -> Result<(), String> {
        if !install::allowed() {
            return Err("LOCKATTR_NO_INSTALL is set".to_owned());
        }
        for tool in ["apt-get", "dpkg-deb"] {
            if !child::succeeds(tool, &["--version"]) {
                return Err(format!("there is no {tool}: this system is not Debian"));
            }
        }
        let all: Vec<&str> = self.servers.iter().map(|server| server.display_name).collect();
        eprintln!("xtask: unpacking the newest {} into {}", all.join(" and "), directory.display());
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "newest.sh"]).arg(directory).arg(self.name);
        let output =
            shell.output().map_err(|error| format!("`sh` could not be started ({error})"))?;
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(errors.trim().lines().last().unwrap_or("the download failed").to_owned())
    }
}

/// PostgreSQL refuses to run as root. If the tests run as root, another user starts it and needs
/// access to it.
fn check_access(newest: Newest) -> Result<Newest, String> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let closed = |path: &&Path| path.metadata().is_ok_and(|file| file.mode() & 0o001 == 0);
    match newest.program.ancestors().find(closed).filter(|_| is_root) {
        Some(path) if newest.server.chosen_by == servers::POSTGRES => {
            let path = path.display();
            Err(format!(
                "PostgreSQL: it refuses to run as root, and other users have no access to {path}"
            ))
        }
        _ => Ok(newest),
    }
}
