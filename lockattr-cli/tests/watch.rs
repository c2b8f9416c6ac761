//! `lockattr watch` in a pipe: one line for each change.

use lockattr_tests::{Node, assert_nothing_left};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{at_once, lockattr, server, service};
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
        tokio::time::timeout(std::time::Duration::from_secs(10), async {
            while orders.held_locks().await.unwrap().iter().all(|lock| lock.waiting == 0) {}
        })
        .await
        .unwrap();
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
async fn a_pipe_gets_lines_in_words_and_a_store_that_comes_back_is_watched_on() {
    let (server, url) = server().await;
    let orders = service(&server, "orders").await;
    let _guard = orders.acquire("product:1", at_once()).await.unwrap();
    let mut command = lockattr(&url, &["watch", "--every", "50ms"]);
    command.stderr(std::process::Stdio::null());
    let mut node = Node::run(command);
    let line = node.line().await;
    assert!(line.contains(" held       product:1 by orders@"), "{line}");
    server.restart().await;
    let line = node.line().await;
    assert!(line.contains(" released   product:1 by orders@"), "{line}");
    node.interrupt_signal();
    assert_eq!(node.finish().await.code(), Some(0));
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
