//! `lockattr run` in a terminal that it shares, with redirected output, and with stopped processes.

use lockattr_tests::{assert_nothing_left, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};

use crate::support::{renewing_server, running, send, server, state};
use crate::terminal::Terminal;

#[tokio::test]
async fn a_command_whose_output_goes_to_a_file_reads_from_the_terminal() {
    let (server, url) = server().await;
    let mut terminal = Terminal::shell(&url).await;
    let directory = tempfile::tempdir().unwrap();
    for redirection in [">file", "2>file", ">file 2>&1"] {
        let file = directory.path().join("file");
        let script = format!(
            "cd {}; lockattr run nightly -- sh -c 'read line; echo got $line >&2; echo got $line' \
             {redirection}; echo $((40+$?))\r",
            directory.path().display()
        );
        terminal.types(&script).await;
        eventually("the lock is held", async || {
            server.cli().await.value("lock:nightly").await.is_some()
        })
        .await;
        terminal.types("hello\r").await;
        terminal.shows("\n40\n$").await;
        assert!(std::fs::read_to_string(file).unwrap().starts_with("got hello\n"));
        assert_nothing_left(&server).await;
        terminal.types("clear\r").await;
        terminal.until(|text| !text.contains("hello")).await;
    }
}

/// The shell sets the signal mask of the processes that it starts.
#[tokio::test]
async fn a_command_that_shares_the_terminal_reads_nothing_and_goes_on() {
    let (server, url) = server().await;
    let mut terminal = Terminal::shell(&url).await;
    let script = "lockattr run nightly -- sh -c 'read line || echo none; stty -echo; stty echo; \
                  echo $((6*7))' | cat\r";
    terminal.types(script).await;
    terminal.shows("\nnone\n42\n$").await;
    terminal.types("lockattr run nightly -- no-such-command | cat\r").await;
    terminal.shows("not found\n$").await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_command_that_stands_still_is_ended_by_a_signal() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        let (server, url) = server().await;
        let mut node = running(&url, &["nightly"], "echo $$; kill -STOP $$; sleep 1000");
        let pid = node.line().await.parse().unwrap();
        eventually("the command is stopped", async || state(pid) == Some('T')).await;
        send(&node, signal);
        assert_eq!(node.finish().await.code(), Some(128 + signal as i32));
        assert_nothing_left(&server).await;
    }
}

#[tokio::test]
async fn the_leash_is_not_stopped_with_a_command_that_reads_in_the_background() {
    for signal in ["TTIN", "TTOU"] {
        let (server, url) = server().await;
        let script = format!("echo $$; kill -{signal} 0; echo on");
        let mut node = running(&url, &["nightly"], &script);
        let pid = node.line().await.parse::<u32>().unwrap();
        eventually("the command is stopped", async || state(pid) == Some('T')).await;
        let command = Pid::from_raw(pid.try_into().unwrap());
        let leash = getpgid(Some(command)).unwrap();
        assert_ne!(leash, command);
        // As by Ctrl-Z: the leash continues the whole group.
        kill(leash, Signal::SIGTSTP).unwrap();
        assert_eq!(node.line().await, "on");
        assert_eq!(node.finish().await.code(), Some(0));
        assert_nothing_left(&server).await;
    }
}

#[tokio::test]
async fn a_terminal_that_stops_who_writes_in_the_background_stops_no_run() {
    let (server, url) = renewing_server().await;
    let mut terminal = Terminal::shell(&url).await;
    terminal.types("stty tostop; lockattr run nightly -- sleep 1000; echo $((6+$?))\r").await;
    eventually("the lock is held", async || {
        server.cli().await.value("lock:nightly").await.is_some()
    })
    .await;
    assert_eq!(server.cli().await.query::<u32>(&["DEL", "lock:nightly"]).await, 1);
    terminal.shows("the lease on `nightly` was lost").await;
    terminal.shows("\n82\n$").await;
    assert_nothing_left(&server).await;
}
