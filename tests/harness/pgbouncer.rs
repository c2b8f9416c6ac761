//! A `PgBouncer` in front of a PostgreSQL server of the harness.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::eventually::{Backoff, HUNG};
use crate::port::Port;
use crate::postgres_server::{as_other_user, other_user};
use crate::process::{Process, install_hint};
use crate::{PostgresServer, patient};

/// The environment variable that names a program other than Debian's.
const PROGRAM: &str = "LOCKATTR_PGBOUNCER";

/// A pooler on a free loopback port. It is killed when this value is dropped.
#[derive(Debug)]
pub struct PgBouncer {
    /// Declared first, so that it is dropped before its directory.
    _process: Process,
    _directory: TempDir,
    port: Port,
}

impl PgBouncer {
    /// Starts a pooler with `size` connections for each database and user. `settings` are more
    /// lines of its configuration file.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub async fn before(server: &PostgresServer, mode: &str, size: usize, settings: &str) -> Self {
        start(server, mode, size, settings).await
    }

    /// Returns the URL of a store in this database, behind the pooler.
    pub fn url(&self, database: &str) -> String {
        patient(&format!("postgres://lockattr@127.0.0.1:{}/{database}", self.port))
    }
}

async fn start(server: &PostgresServer, mode: &str, size: usize, settings: &str) -> PgBouncer {
    let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
    let (path, port) = (directory.path(), Port::free());
    let (users, file) = (path.join("users"), path.join("ini"));
    fs::write(&users, "\"lockattr\" \"\"\n").expect("the pooler's list of users can be written");
    let (host, users) = (server.addr().replace(':', " port="), users.display());
    let ini = format!(
        "[databases]\n* = host={host}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = trust\nauth_file = {users}\nmax_client_conn = 500\n\
         pool_mode = {mode}\ndefault_pool_size = {size}\n{settings}\n"
    );
    fs::write(&file, ini).expect("the pooler's configuration can be written");
    if let Some((user, group)) = other_user() {
        for path in [path, &path.join("users"), &file] {
            chown(path, Some(user), Some(group)).expect("root may change the owner of a file");
        }
    }
    let program = std::env::var_os(PROGRAM).unwrap_or_else(|| "/usr/sbin/pgbouncer".into());
    let mut command = as_other_user(Path::new(&program));
    command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Process::start(&mut command, Some(path));
    let mut process = started.unwrap_or_else(|error| {
        panic!("pgbouncer could not be started: {error}; {}", install_hint("pgbouncer"))
    });
    let mut backoff = Backoff::new();
    while TcpStream::connect(("127.0.0.1", port.number())).is_err() {
        assert!(process.exit_status().is_none(), "pgbouncer ended before it was ready");
        assert!(backoff.pause().await, "pgbouncer is not ready within {HUNG:?}");
    }
    PgBouncer { _process: process, _directory: directory, port }
}
