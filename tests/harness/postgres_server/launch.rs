//! Starts the server's process in a new directory, and waits until it is ready, its port is taken,
//! or it fails.

use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;

use super::PostgresServer;
use crate::eventually::Backoff;
use crate::log::last_lines;
use crate::port::Port;
use crate::process::{Process, install_hint};
use crate::template::Template;

/// The environment variable that names a program other than the newest.
const PROGRAM: &str = "LOCKATTR_POSTGRES";

/// Settings without syncs to disk: written data survives a killed server all the same.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
full_page_writes = off
max_wal_size = 1GB
shared_buffers = 32MB
max_connections = 300
logging_collector = off
dynamic_shared_memory_type = mmap
";

enum Failure {
    PortTaken,
    Other(String),
}

/// Creates a server with its own directory and port, which has not started yet.
pub(super) async fn create() -> PostgresServer {
    static TEMPLATE: Template = Template::new();
    let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
    give_away(directory.path());
    TEMPLATE.copy_to(directory.path(), create_data).await;
    PostgresServer { process: Mutex::new(None), directory, port: Port::free() }
}

/// Makes the server's user the owner.
fn give_away(path: &Path) {
    if let Some((user, group)) = other_user() {
        chown(path, Some(user), Some(group)).expect("root may change the owner of a file");
    }
}

/// Starts a server. The system may still be cleaning up after an earlier process of it, so a taken port is
/// retried.
pub(super) async fn start(directory: &Path, port: u16) -> Process {
    let mut backoff = Backoff::new();
    loop {
        match boot(directory, port).await {
            Ok(process) => return process,
            Err(Failure::PortTaken) if backoff.pause().await => {}
            Err(Failure::PortTaken) => panic!("postgres did not start: port {port} is in use"),
            Err(Failure::Other(reason)) => panic!("{reason}"),
        }
    }
}

/// Creates an empty server's data. Small segments of its log make copies cheap.
fn create_data(directory: &Path) {
    give_away(directory);
    let mut command = as_other_user(&program("initdb"));
    let data = directory.join("data");
    command.args(["--username=lockattr", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    command.args(["--no-sync", "--no-instructions", "--wal-segsize=1"]).arg("--pgdata").arg(&data);
    let output =
        command.output().unwrap_or_else(|error| panic!("{}", not_started("initdb", &error)));
    assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
    let file = data.join("postgresql.auto.conf");
    fs::write(file, SETTINGS).expect("the server's configuration can be written");
}

async fn boot(directory: &Path, port: u16) -> Result<Process, Failure> {
    let (data, log) = (directory.join("data"), directory.join("log"));
    let mut command = as_other_user(&program("postgres"));
    let file = fs::File::create(&log).expect("a log file");
    command.arg("-D").arg(&data).arg("-p").arg(port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let started = Process::start(&mut command, Some(directory));
    let mut process = started.map_err(|error| Failure::Other(not_started("postgres", &error)))?;
    let mut backoff = Backoff::new();
    loop {
        if process.exit_status().is_some() {
            return Err(diagnose(&log));
        }
        if is_ready(&data, process.id()) {
            return Ok(process);
        }
        if !backoff.pause().await {
            return Err(diagnose(&log));
        }
    }
}

/// Returns whether `postmaster.pid`, which the server writes into its data directory, has this
/// process id and the state `ready`.
fn is_ready(data: &Path, pid: u32) -> bool {
    let text = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let mut lines = text.lines().map(str::trim);
    lines.next() == Some(&pid.to_string()) && lines.next_back() == Some("ready")
}

fn not_started(program: &str, error: &Error) -> String {
    let hint = install_hint("postgresql");
    format!("{program} could not be started: {error}; {hint}, or set {PROGRAM} to a server's path")
}

fn diagnose(log: &Path) -> Failure {
    let log = fs::read_to_string(log).unwrap_or_default();
    if log.contains("Address already in use") {
        return Failure::PortTaken;
    }
    Failure::Other(format!("postgres did not start:\n{}", last_lines(&log)))
}

/// Returns the path of one of the server's programs, which are not on the `PATH` everywhere.
fn program(name: &str) -> PathBuf {
    if let Ok(chosen) = std::env::var(PROGRAM) {
        return Path::new(&chosen).with_file_name(name);
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(|path| version(path));
    newest.map_or_else(|| name.into(), |newest| newest.join("bin").join(name))
}

pub(crate) fn as_other_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = other_user() {
        command.uid(user).gid(group);
    }
    // A directory that both users may enter.
    command.current_dir("/");
    command
}

/// Returns the user and group that the server runs as if the tests run as root.
pub(crate) fn other_user() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").expect("a process").uid() != 0 {
        return None;
    }
    let users = match fs::read_to_string("/etc/passwd") {
        Ok(users) => users,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => panic!("/etc/passwd: {error}"),
    };
    let ids_of = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map_while(|id| id.parse().ok());
        Some((ids.next()?, ids.next()?))
    };
    let found = ids_of("postgres").or_else(|| ids_of("nobody"));
    Some(found.expect("the user `postgres` or `nobody`: the server refuses to run as root"))
}
