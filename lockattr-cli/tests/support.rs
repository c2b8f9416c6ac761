//! Starts the program, reads its output, and checks whether a process exists.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, RedisStore, ReleaseOutcome, Store,
};
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Node, RedisServer, eventually, for_store};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_lockattr");

/// `lockattr WORD…` with this store in the environment.
pub(crate) fn lockattr(url: &str, words: &[&str]) -> Command {
    // The process that runs the tests may ignore signals, as under `nohup` or in the background of a
    // shell, and its children would inherit that.
    let mut command = Command::new("env");
    command.args(["--default-signal", PROGRAM]).env("LOCKATTR_URL", url).args(words);
    command
}

/// The output of the program, and its exit code.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs it to its end.
pub(crate) async fn said(url: &str, words: &[&str]) -> Said {
    let output = tokio::process::Command::from(lockattr(url, words)).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Acquires the key and marks it as done, as a process that has ended since.
pub(crate) async fn done_by(server: &RedisServer, key: &str, lasts: Duration) {
    let store = RedisStore::open(&for_store(&server.url())).unwrap();
    let label = "since=1700000000000 service=reports host=batch-1 pid=9 function=report.sh";
    let claim = Arc::new(Claim::new(LockKey::new("lock:", key).unwrap(), label));
    let request = AcquireRequest::new(claim.clone(), Duration::from_secs(600));
    let acquired = store.acquire(&request).await.unwrap();
    assert!(matches!(acquired, AcquireOutcome::Acquired { .. }), "{acquired:?}");
    assert_eq!(store.mark_done(&claim, lasts).await.unwrap(), ReleaseOutcome::Released);
}

/// Starts `lockattr run WORD… -- sh -c SCRIPT`.
pub(crate) fn running(url: &str, words: &[&str], script: &str) -> Node {
    let mut command = lockattr(url, &["run"]);
    command.args(words).args(["--", "sh", "-c", script]);
    Node::run(command)
}

/// Whether a process has ended, even if it was not reaped yet.
fn is_gone(pid: u32) -> bool {
    let number = Pid::from_raw(pid.try_into().expect("a process id"));
    if kill(number, None) == Err(Errno::ESRCH) {
        return true;
    }
    state(pid) == Some('Z')
}

/// The state of a process as the letter of the system: `T` for a stopped one.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain anything.
    stat.rsplit(") ").next()?.chars().next()
}

pub(crate) fn send(node: &Node, signal: Signal) {
    kill(Pid::from_raw(node.id().try_into().expect("a process id")), signal).expect("it is there");
}

/// The process IDs of a command and its child, parsed from a line of output. A test that fails leaves
/// neither running.
#[derive(Debug)]
pub(crate) struct Two([u32; 2]);

impl Two {
    pub(crate) fn parse(line: &str) -> Self {
        let numbers = line.split(' ').map(|word| word.parse().expect("a number"));
        Self(numbers.collect::<Vec<u32>>().try_into().expect("two of them"))
    }

    pub(crate) fn are_there(&self) -> bool {
        self.0.into_iter().all(|pid| !is_gone(pid))
    }

    pub(crate) async fn end(&self) {
        let gone = async || self.0.into_iter().all(is_gone);
        eventually("the command and its child are gone", gone).await;
    }
}

impl Drop for Two {
    fn drop(&mut self) {
        for pid in self.0.into_iter().filter(|pid| !is_gone(*pid)) {
            let pid = Pid::from_raw(pid.try_into().expect("a process id"));
            // With its leash, in case the leash failed.
            getpgid(Some(pid)).and_then(|group| killpg(group, Signal::SIGKILL)).ok();
        }
    }
}

/// A server, and the URL of its store.
pub(crate) async fn server() -> (RedisServer, String) {
    let server = RedisServer::start().await;
    let url = server.url();
    (server, url)
}

/// The same, where a lease is renewed after four seconds, and a lock that is taken away is lost then. A process that gets
/// no core for seven more keeps its lease.
pub(crate) async fn renewing_server() -> (RedisServer, String) {
    let server = RedisServer::start().await;
    let url = server.url_with("ttl=12s");
    (server, url)
}

/// A manager of a service, for locks that the program can list.
pub(crate) async fn service(server: &RedisServer, name: &str) -> LockManager {
    let builder = LockManager::builder().url(server.url()).service(name);
    builder.connect().await.unwrap()
}

/// Options for a lock that is free.
pub(crate) fn at_once() -> LockOptions {
    LockOptions::new().function("shop::deduct")
}
