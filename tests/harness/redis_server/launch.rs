//! Starts the server's process, and waits until it responds, its port is in use, or it fails.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::config::{Config, FILE, LOG};
use super::{RedisServer, RedisServerBuilder};
use crate::Cli;
use crate::eventually::Backoff;
use crate::log::last_lines;
use crate::process::{Process, install_hint};

/// The environment variable that names a program other than the `redis-server` on the `PATH`.
const PROGRAM: &str = "LOCKATTR_REDIS_SERVER";

/// The reason why a server did not start.
enum Failure {
    PortTaken,
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PortTaken => "its port is in use",
            Self::Other(reason) => reason,
        })
    }
}

/// Starts a new server on its own ports.
pub(super) async fn launch(settings: RedisServerBuilder) -> RedisServer {
    let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
    let config = Config::new(settings);
    config.write(directory.path());
    let process =
        boot(&config, directory.path()).await.unwrap_or_else(|failure| panic!("{failure}"));
    let (process, stopped) = (Mutex::new(Some(process)), AtomicBool::new(false));
    RedisServer { process, stopped, config, directory }
}

/// Starts the same server again. The system may still be cleaning up after the old process, so a
/// taken port is retried.
pub(super) async fn revive(config: &Config, directory: &Path) -> Process {
    let mut backoff = Backoff::new();
    loop {
        match boot(config, directory).await {
            Ok(process) => return process,
            Err(Failure::PortTaken) if backoff.pause().await => {}
            Err(failure) => panic!("the server did not restart: {failure}"),
        }
    }
}

/// Removes the data that a server would load, but not its configuration.
pub(super) fn wipe(directory: &Path) {
    ignore_not_found(fs::remove_file(directory.join("dump.rdb")));
    ignore_not_found(fs::remove_dir_all(directory.join("appendonlydir")));
}

/// Ignores the error that the file did not exist.
fn ignore_not_found(result: io::Result<()>) {
    if let Err(error) = result {
        assert_eq!(error.kind(), ErrorKind::NotFound, "the server's directory: {error}");
    }
}

async fn boot(config: &Config, directory: &Path) -> Result<Process, Failure> {
    ignore_not_found(fs::remove_file(directory.join(LOG)));
    let mut process = spawn(config, directory)?;
    let mut backoff = Backoff::new();
    loop {
        // Checked first: if this server could not bind, another one may respond on its port.
        if process.exit_status().is_some() {
            return Err(diagnose(directory));
        }
        if is_this_process(config, process.id()).await {
            return Ok(process);
        }
        if !backoff.pause().await {
            return Err(diagnose(directory));
        }
    }
}

fn spawn(config: &Config, directory: &Path) -> Result<Process, Failure> {
    let usual = || std::env::var(PROGRAM).unwrap_or_else(|_| "redis-server".to_owned());
    let program = config.program().map_or_else(usual, |path| path.display().to_string());
    let mut command = Command::new(&program);
    command.arg(directory.join(FILE));
    command.args(config.is_sentinel().then_some("--sentinel"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Process::start(&mut command, Some(directory)).map_err(|error| {
        Failure::Other(match error.kind() {
            ErrorKind::NotFound => format!(
                "`{program}` is not installed. {}, or set {PROGRAM} to a server's path.",
                install_hint("redis-server")
            ),
            _ => format!("`{program}` could not be started: {error}"),
        })
    })
}

/// Returns whether this process responds on the port, and not another that bound it first.
async fn is_this_process(config: &Config, pid: u32) -> bool {
    let addr = format!("127.0.0.1:{}", config.port());
    match Cli::connect(addr, config.password()).await {
        Ok(cli) => cli.server_pid().await == Some(pid),
        Err(_) => false,
    }
}

fn diagnose(directory: &Path) -> Failure {
    let log = fs::read_to_string(directory.join(LOG)).unwrap_or_default();
    if log.contains("Address already in use") || log.contains("Failed listening on port") {
        return Failure::PortTaken;
    }
    Failure::Other(format!("redis-server did not start:\n{}", last_lines(&log)))
}
