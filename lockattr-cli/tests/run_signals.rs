//! `lockattr run` and signals: from a service manager, and from a terminal.

use std::process::Command;

use lockattr_tests::{Node, assert_nothing_left, eventually};
use nix::sys::signal::Signal;

use crate::support::{PROGRAM, running, send, server};
use crate::terminal::Terminal;

#[tokio::test]
async fn a_signal_is_passed_on_and_the_lock_given_back_when_the_command_has_ended() {
    for (name, signal) in
        [("TERM", Signal::SIGTERM), ("INT", Signal::SIGINT), ("HUP", Signal::SIGHUP)]
    {
        let (server, url) = server().await;
        let script = format!(
            "trap 'echo asked; read line; exit 3' {name}; echo up; while :; do sleep 0.02; done"
        );
        let mut node = running(&url, &["nightly"], &script);
        assert_eq!(node.line().await, "up");
        send(&node, signal);
        assert_eq!(node.line().await, "asked");
        let held = server.cli().await.value("lock:nightly").await;
        assert!(held.is_some(), "given back while the command runs");
        node.say("go").await;
        assert_eq!(node.finish().await.code(), Some(3));
        assert_nothing_left(&server).await;
    }
}

#[tokio::test]
async fn a_command_that_a_signal_ends_has_the_code_of_shells() {
    let (server, url) = server().await;
    let mut node = running(&url, &["nightly"], "echo up; while :; do sleep 0.02; done");
    assert_eq!(node.line().await, "up");
    send(&node, Signal::SIGTERM);
    assert_eq!(node.finish().await.code(), Some(143));
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn nohup_is_nohup_for_the_command_as_well() {
    let (server, url) = server().await;
    let mut nohup = Command::new("nohup");
    nohup.args([PROGRAM, "run", "nightly", "--", "sh", "-c"]).env("LOCKATTR_URL", url);
    nohup.arg("echo up; read line; kill -HUP $$; echo there").stderr(std::process::Stdio::null());
    let mut node = Node::run(nohup);
    assert_eq!(node.line().await, "up");
    send(&node, Signal::SIGHUP);
    node.say("go").await;
    assert_eq!(node.line().await, "there");
    assert_eq!(node.finish().await.code(), Some(0));
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn the_command_reads_from_the_terminal_and_ctrl_c_is_for_it() {
    let (server, url) = server().await;
    let mut terminal = Terminal::shell(&url).await;
    let script = "lockattr run nightly -- sh -c 'read line; echo got $line; read line'; echo $?\r";
    terminal.types(script).await;
    eventually("the lock is held", async || {
        server.cli().await.value("lock:nightly").await.is_some()
    })
    .await;
    terminal.types("hello\r").await;
    terminal.shows("\ngot hello").await;
    terminal.types("\u{1a}").await;
    terminal.shows("not suspended").await;
    terminal.types("\u{3}").await;
    terminal.shows("130\n$").await;
    assert_nothing_left(&server).await;
    // The terminal is the shell's again.
    terminal.types("echo again and again | tr a e\r").await;
    terminal.shows("\negein end egein").await;
}

#[tokio::test]
async fn ctrl_c_ends_the_script_around_a_run_as_well() {
    let (server, url) = server().await;
    let mut terminal = Terminal::shell(&url).await;
    let script = "lockattr run nightly -- sh -c 'echo $((6*7)); read line'; echo went $((6*7)) on";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script");
    std::fs::write(&file, script).unwrap();
    terminal.types(&format!("sh {}\r", file.display())).await;
    terminal.shows("\n42").await;
    terminal.types("\u{3}").await;
    terminal.prompts().await;
    assert!(!terminal.text().contains("went 42 on"), "{}", terminal.text());
    assert_nothing_left(&server).await;
}
