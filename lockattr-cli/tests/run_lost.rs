//! `lockattr run` that loses its lease, or is killed: the command and its children end.

use std::process::Stdio;

use futures_util::future::join_all;
use lockattr_tests::{Node, assert_nothing_left, in_time};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::{Two, lockattr, renewing_server, running, server};

/// A command and its child; it prints both process IDs.
const TWO: &str = "sleep 1000 & echo $$ $!; wait";
/// The same, and neither ends on SIGTERM.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & echo $$ $!; while :; do sleep 0.05; done";
/// The command ends on SIGTERM, and its child does not.
const STUBBORN_CHILD: &str = "(trap '' TERM; exec sleep 1000) & echo $$ $!; wait";

#[tokio::test]
async fn a_lease_that_is_taken_away_ends_the_command_and_its_children() {
    let ends = async |(script, kill_after): (&str, &str)| {
        let (server, url) = renewing_server().await;
        let mut command = lockattr(&url, &["run", "--kill-after", kill_after, "nightly"]);
        command.args(["--", "sh", "-c", script]);
        let mut child = tokio::process::Command::from(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).await.unwrap();
        let two = Two::parse(line.trim_end());
        assert!(two.are_there());

        assert_eq!(server.cli().await.query::<u32>(&["DEL", "lock:nightly"]).await, 1);
        let output = in_time(child.wait_with_output()).await.unwrap();
        assert_eq!(output.status.code(), Some(76));
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.starts_with("lockattr: the lease on `nightly` was lost: "), "{message}");
        two.end().await;
        assert_nothing_left(&server).await;
    };
    join_all([(TWO, "1m"), (STUBBORN, "200ms"), (STUBBORN_CHILD, "200ms")].map(ends)).await;
}

#[tokio::test]
async fn a_store_that_is_away_for_too_long_ends_the_command() {
    let (server, url) = renewing_server().await;
    let mut node = running(&url, &["nightly"], TWO);
    let two = Two::parse(&node.line().await);
    server.kill();
    assert_eq!(node.finish().await.code(), Some(76));
    two.end().await;
}

#[tokio::test]
async fn a_command_that_runs_for_longer_than_it_may_is_ended() {
    let (server, url) = renewing_server().await;
    let mut node = running(&url, &["--max-hold", "12s", "nightly"], TWO);
    let two = Two::parse(&node.line().await);
    assert_eq!(node.finish().await.code(), Some(76));
    two.end().await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_run_that_is_killed_takes_its_command_along() {
    // A command that does not end by itself is killed before its lease ends.
    let ends = async |script| {
        let (server, url) = renewing_server().await;
        let mut node = running(&url, &["--kill-after", "1h", "nightly"], script);
        let two = Two::parse(&node.line().await);
        node.kill();
        two.end().await;
        assert_nothing_left(&server).await;
    };
    join_all([TWO, STUBBORN, STUBBORN_CHILD].map(ends)).await;
}

/// `leash` refuses to run outside of `lockattr run`.
#[tokio::test]
async fn a_leash_outside_of_a_run_ends_no_process() {
    let mut sh = std::process::Command::new("sh");
    let script = "\"$0\" leash --kill-after 0s </dev/null; echo $?";
    let mut node = Node::run({
        sh.args(["-c", script, crate::support::PROGRAM]);
        sh
    });
    assert_eq!(node.line().await, "2");
}

#[tokio::test]
async fn a_lease_that_was_lost_without_a_word_is_notified_at_the_end() {
    let (server, url) = server().await;
    let mut node = running(&url, &["nightly"], "echo up; read line");
    assert_eq!(node.line().await, "up");
    assert_eq!(server.cli().await.query::<u32>(&["DEL", "lock:nightly"]).await, 1);
    node.say("go").await;
    assert_eq!(node.finish().await.code(), Some(76));
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_store_that_is_away_at_the_end_hides_no_exit_code() {
    let (server, url) = server().await;
    let mut node = running(&url, &["nightly"], "echo up; read line; exit 7");
    assert_eq!(node.line().await, "up");
    server.kill();
    node.say("go").await;
    assert_eq!(node.finish().await.code(), Some(7));
}
