//! `lockattr watch` in a pipe: one line for each change.

use std::process::Stdio;
use std::time::Duration;

use lockattr_tests::{Node, assert_nothing_left, in_time};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::{PROGRAM, at_once, done_by, lockattr, said, server, service};
use crate::terminal::Terminal;

async fn next_change(node: &mut Node) -> (Value, Value, Value) {
    let line: Value = serde_json::from_str(&node.line().await).unwrap();
    assert!(line["at"].as_str().unwrap().ends_with('Z'), "{line}");
    (line["event"].clone(), line["key"].clone(), line["holder"]["service"].clone())
}

#[tokio::test]
async fn each_change_is_a_line() {
    let (server, url) = server().await;
    let (orders, reports) = (service(&server, "orders").await, service(&server, "reports").await);
    let guard = orders.acquire("product:1", at_once()).await.unwrap();
    let words = ["watch", "--json", "--every", "50ms", "product:*"];
    let mut node = Node::run(lockattr(&url, &words));
    let line = |event: &str, key: &str, service: &str| (event.into(), key.into(), service.into());
    assert_eq!(next_change(&mut node).await, line("held", "product:1", "orders"));

    let _elsewhere = orders.acquire("order:1", at_once()).await.unwrap();
    let second = orders.acquire("product:2", at_once()).await.unwrap();
    assert_eq!(next_change(&mut node).await, line("acquired", "product:2", "orders"));

    let waits = lockattr::LockOptions::new();
    let (next, released) = tokio::join!(reports.acquire("product:1", waits), async {
        in_time(async {
            while orders.held_locks().await.unwrap().iter().all(|lock| lock.waiting == 0) {}
        })
        .await;
        guard.release().await
    });
    released.unwrap();
    assert_eq!(next_change(&mut node).await, line("handed_off", "product:1", "reports"));
    second.release().await.unwrap();
    assert_eq!(next_change(&mut node).await, line("released", "product:2", "orders"));
    next.unwrap().release().await.unwrap();
    assert_eq!(next_change(&mut node).await, line("released", "product:1", "reports"));

    node.interrupt_signal();
    assert_eq!(node.finish().await.code(), Some(0));
    drop(_elsewhere);
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_key_that_becomes_done_is_a_line_and_so_is_its_reopening() {
    let (server, url) = server().await;
    let period = Duration::from_secs(3_600);
    done_by(&server, "nightly", period).await;
    let mut node = Node::run(lockattr(&url, &["watch", "--json", "--every", "50ms"]));
    let line = |event: &str, key: &str| (event.into(), key.into(), "reports".into());
    assert_eq!(next_change(&mut node).await, line("done", "nightly"));
    let mut words = Node::run(lockattr(&url, &["watch", "--every", "50ms"]));
    let first = words.line().await;
    assert!(first.contains(" done       nightly by reports@batch-1:9 until "), "{first}");

    done_by(&server, "weekly", period).await;
    let mut next = next_change(&mut node).await;
    if next == line("acquired", "weekly") {
        // A query came between the acquisition and the mark.
        next = next_change(&mut node).await;
    }
    assert_eq!(next, line("done", "weekly"));
    let forced = said(&url, &["release", "--force", "nightly"]).await;
    assert!(forced.out.starts_with("reopened: "), "{forced:?}");
    assert_eq!(next_change(&mut node).await, line("released", "nightly"));
    for mut node in [node, words] {
        node.interrupt_signal();
        assert_eq!(node.finish().await.code(), Some(0));
    }
    assert_eq!(said(&url, &["release", "--force", "weekly"]).await.code, Some(0));
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_pipe_gets_lines_in_words_and_a_store_that_comes_back_is_watched_on() {
    let (server, url) = server().await;
    let orders = service(&server, "orders").await;
    let _guard = orders.acquire("product:1", at_once()).await.unwrap();
    let mut command = lockattr(&url, &["watch", "--every", "50ms"]);
    command.stderr(Stdio::null());
    let mut node = Node::run(command);
    let line = node.line().await;
    assert!(line.contains(" held       product:1 by orders@"), "{line}");
    server.restart().await;
    let line = node.line().await;
    assert!(line.contains(" released   product:1 by orders@"), "{line}");
    node.interrupt_signal();
    assert_eq!(node.finish().await.code(), Some(0));
}

/// Red without: `reader_gone` in `stream.rs`.
#[tokio::test]
async fn a_watch_ends_when_its_reader_has_gone_although_nothing_changes() {
    let (server, url) = server().await;
    let orders = service(&server, "orders").await;
    let _guard = orders.acquire("product:1", at_once()).await.unwrap();
    for words in [&["watch", "--every", "1h"][..], &["watch", "--every", "1h", "--json"]] {
        let mut command = tokio::process::Command::from(lockattr(&url, words));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        in_time(reader.read_line(&mut line)).await.unwrap();
        assert!(line.contains("product:1"), "{line}");
        // Nothing is written any more: the next query is in an hour.
        drop(reader);
        let output = in_time(child.wait_with_output()).await.unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    }
}

/// Red without: `reader_gone` in `stream.rs`.
#[tokio::test]
async fn a_watch_in_a_shell_ends_with_head() {
    let (server, url) = server().await;
    let orders = service(&server, "orders").await;
    let _guard = orders.acquire("product:1", at_once()).await.unwrap();
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", "\"$0\" watch --every 1h | head -1", PROGRAM]).env("LOCKATTR_URL", &url);
    let output = in_time(shell.kill_on_drop(true).output()).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(" held       product:1 by orders@"), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[tokio::test]
async fn a_view_that_is_notified_to_end_leaves_the_terminal_as_it_was() {
    let (_server, url) = server().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let mut terminal = Terminal::shell(&url).await;
    let command = format!("sh -c 'echo $$ >{}; exec lockattr watch'; echo $?\r", file.display());
    terminal.types(&command).await;
    terminal.shows("0 held · 0 waiting").await;
    assert!(terminal.screen().alternate_screen());
    let pid = std::fs::read_to_string(file).unwrap().trim_end().parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    terminal.shows("\n0\n$").await;
    assert!(!terminal.screen().alternate_screen() && !terminal.screen().hide_cursor());
    // The terminal reads lines and echoes keys again.
    terminal.types("echo again | tr a e\r").await;
    terminal.shows("$ echo again | tr a e\negein\n").await;
}
