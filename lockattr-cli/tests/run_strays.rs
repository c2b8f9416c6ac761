//! `lockattr run` and a command that creates its own process group, as `timeout` does, or its own
//! session, as `setsid` does.

use std::process::Command;

use futures_util::future::join_all;
use lockattr_tests::{HUNG, Node, assert_nothing_left, in_time};
use nix::sys::signal::Signal;

use crate::support::{Two, lockattr, renewing_server, send, server};
use crate::terminal::Terminal;

/// Programs that put the command into another group.
const LEAVES: [&[&str]; 2] = [&["timeout", "1000"], &["setsid"]];
/// A command and its child; it prints both process IDs.
const TWO: &str = "sleep 1000 & echo $$ $!; wait";
/// The same, and neither ends on SIGTERM.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & echo $$ $!; while :; do sleep 0.05; done";
/// The command ends on SIGTERM, and its child does not.
const STUBBORN_CHILD: &str = "(trap '' TERM; exec sleep 1000) & echo $$ $!; wait";

/// `lockattr run WORD… nightly -- timeout 1000 sh -c SCRIPT`.
fn straying(url: &str, words: &[&str], leaves: &[&str], script: &str) -> Command {
    let mut command = lockattr(url, &["run"]);
    command.args(words).args(["nightly", "--"]).args(leaves).args(["sh", "-c", script]);
    command
}

#[tokio::test]
async fn a_lease_that_is_taken_away_ends_a_command_that_has_left_its_group() {
    let ends = async |leaves, script, kill_after| {
        let (server, url) = renewing_server().await;
        let mut node = Node::run(straying(&url, &["--kill-after", kill_after], leaves, script));
        let two = Two::parse(&node.line().await);
        assert_eq!(server.cli().await.query::<u32>(&["DEL", "lock:nightly"]).await, 1);
        assert_eq!(node.finish().await.code(), Some(76), "{leaves:?}");
        two.end().await;
        assert_nothing_left(&server).await;
    };
    let scripts = [(TWO, "1m"), (STUBBORN, "200ms"), (STUBBORN_CHILD, "200ms")];
    let each = LEAVES.iter().flat_map(|leaves| {
        scripts.iter().map(|(script, kill_after)| ends(leaves, script, kill_after))
    });
    join_all(each).await;
}

#[tokio::test]
async fn a_run_that_is_killed_takes_a_command_along_that_has_left_its_group() {
    // A command that does not end by itself is killed before its lease ends.
    let ends = async |leaves, script| {
        let (server, url) = renewing_server().await;
        let run = straying(&url, &["--kill-after", "1h"], leaves, script);
        let mut merged = Command::new("sh");
        merged.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(run.get_program()).args(run.get_args());
        let mut node = Node::run({
            merged.env("LOCKATTR_URL", &url);
            merged
        });
        let two = Two::parse(&node.line().await);
        // This reply comes after the leash has received the process ID of the command.
        send(&node, Signal::SIGTSTP);
        assert!(node.line().await.contains("not suspended"));
        node.kill();
        two.end().await;
        assert_nothing_left(&server).await;
    };
    let scripts = [TWO, STUBBORN, STUBBORN_CHILD];
    let each = LEAVES.iter().flat_map(|leaves| scripts.map(|script| ends(leaves, script)));
    join_all(each).await;
}

#[tokio::test]
async fn a_signal_is_passed_on_once_to_a_command_that_has_left_its_group() {
    for (name, signal) in [
        ("TERM", Signal::SIGTERM),
        ("INT", Signal::SIGINT),
        ("HUP", Signal::SIGHUP),
        ("USR1", Signal::SIGUSR1),
    ] {
        let (server, url) = server().await;
        // It waits for a second signal, which must not arrive, and no longer than its run lasts.
        let script = format!(
            "n=0; trap 'n=$((n+1)); echo asked $n' {name}; echo up; \
             while [ $n = 0 ] && kill -0 $PPID; do sleep 0.02 & wait; done; sleep 0.2; exit 3"
        );
        let mut node = Node::run(straying(&url, &[], &["setsid"], &script));
        assert_eq!(node.line().await, "up");
        send(&node, signal);
        assert_eq!(node.line().await, "asked 1", "{name}");
        assert_eq!(node.line_within(HUNG).await, None, "{name}: more than once");
        assert_eq!(node.finish().await.code(), Some(3), "{name}");
        assert_nothing_left(&server).await;
    }
}

#[tokio::test]
async fn ctrl_c_is_for_a_command_that_has_left_its_group_as_well() {
    let (server, url) = server().await;
    let mut terminal = Terminal::shell(&url).await;
    // The shell starts no process after its output: a shell that forks may miss a signal.
    let script = "lockattr run nightly -- timeout 1000 sh -c 'echo $((6*7)); while :; do :; done'; echo $?\r";
    terminal.types(script).await;
    terminal.shows("\n42").await;
    terminal.types("\u{3}").await;
    terminal.shows("130\n$").await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_in_a_group_of_its_own_is_notified() {
    let (server, url) = server().await;
    let script = "sleep 1000 >/dev/null 2>&1 & echo $!";
    let mut command = tokio::process::Command::from(straying(&url, &[], &["setsid"], script));
    let output = in_time(command.output()).await.unwrap();
    let pid = String::from_utf8(output.stdout).unwrap().trim_end().parse().unwrap();
    let kept_running = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL);
    assert_eq!((output.status.code(), kept_running), (Some(0), Ok(())));
    let message = "lockattr: the command left processes behind, which continue without the lock on `nightly`\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_process_that_ends_for_want_of_a_lease_hears_signals_still() {
    let (server, url) = renewing_server().await;
    let script = "trap 'echo term' TERM; trap 'echo asked; exit 3' INT; echo up; \
                  while :; do sleep 0.02; done";
    let mut node = crate::support::running(&url, &["--kill-after", "1h", "nightly"], script);
    assert_eq!(node.line().await, "up");
    assert_eq!(server.cli().await.query::<u32>(&["DEL", "lock:nightly"]).await, 1);
    assert_eq!(node.line().await, "term");
    send(&node, Signal::SIGINT);
    assert_eq!(node.line().await, "asked");
    assert_eq!(node.finish().await.code(), Some(76));
    assert_nothing_left(&server).await;
}

/// A command that has ended and that a debugger keeps from being reaped represents all processes that
/// SIGKILL does not end: one that hangs in a file system, or runs as another user.
#[tokio::test]
async fn a_command_that_nothing_ends_is_not_waited_for() {
    let (server, url) = renewing_server().await;
    let words = ["--kill-after", "100ms", "nightly"];
    let mut node = crate::support::running(&url, &words, "echo $$; while :; do sleep 0.02; done");
    let pid = node.line().await.parse().unwrap();
    let debugger = Debugger::of(pid);
    assert_eq!(server.cli().await.query::<u32>(&["DEL", "lock:nightly"]).await, 1);
    assert_eq!(node.finish().await.code(), Some(76));
    drop(debugger);
    assert_nothing_left(&server).await;
}

/// A thread that traces a process, and so receives its exit status instead of the parent.
struct Debugger {
    stop: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Debugger {
    fn of(pid: i32) -> Self {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (seized, is_seized) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let pid = nix::unistd::Pid::from_raw(pid);
            let options = nix::sys::ptrace::Options::empty();
            seized.send(nix::sys::ptrace::seize(pid, options)).unwrap();
            stopped.recv().ok();
        });
        is_seized.recv_timeout(HUNG).unwrap().expect("a process to trace");
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Debugger {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}
