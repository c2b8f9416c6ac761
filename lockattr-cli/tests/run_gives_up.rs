//! `lockattr run` that does not start its command leaves nothing in the store.

use std::process::Stdio;
use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{
    Engine, Etcd, Fault, HUNG, Node, Proxy, RedisServer, assert_nothing_left, eventually, in_time,
};
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use crate::support::{at_once, lockattr, said};

/// The timeout of the program itself.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_process_that_waited_in_vain_has_left_the_queue() {
    let etcd = Etcd::single().await;
    let url = etcd.url();
    let manager = LockManager::connect(&url).await.unwrap();
    let guard = manager.acquire("nightly", at_once()).await.unwrap();
    for _ in 0..3 {
        // A store that does not answer within the wait is no lock that is busy.
        let waited = async || {
            let words = ["run", "--wait", "300ms", "nightly", "--", "echo", "ran"];
            let said = said(&url, &words).await;
            assert_eq!(said.out, "", "{said:?}");
            said.code == Some(75)
        };
        eventually("it waits in vain", waited).await;
        assert_eq!(manager.held_locks().await.unwrap()[0].waiting, 0);
    }
    guard.release().await.unwrap();
    let next = in_time(manager.acquire("nightly", LockOptions::new()));
    next.await.unwrap().release().await.unwrap();
    manager.shutdown().await;
    assert_eq!(etcd.left().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_lock_whose_grant_was_never_heard_of_is_given_back() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    proxy.next("acquire", Fault::CutAfter);
    let url = lockattr_tests::with_query(&server.url_through(&proxy), "retry=0");
    let said = said(&url, &["run", "nightly", "--", "echo", "ran"]).await;
    assert_eq!((said.code, said.out.as_str()), (Some(69), ""), "{said:?}");
    assert!(proxy.answered("release") > 0, "{:?}", proxy.log());
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_bench_that_fails_leaves_nothing() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    // A second attempt may follow at once, and a third one only after a pause.
    for _ in 0..3 {
        proxy.next("release", Fault::CutBefore);
    }
    let url = lockattr_tests::with_query(&server.url_through(&proxy), "retry=0");
    let said = said(&url, &["bench", "--tasks", "1", "--keys", "1"]).await;
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert_nothing_left(&server).await;
}

/// A process that waits for the store ends by itself after ten seconds. On a busy machine, one that does not wait may take
/// so long too, but not each time.
#[tokio::test]
async fn a_process_that_is_notified_twice_to_end_does_not_wait_for_a_store_that_is_away() {
    let server = RedisServer::start().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let guard = manager.acquire("nightly", at_once()).await.unwrap();
    let ends_at_once = async || {
        let proxy = Proxy::start(server.addr()).await;
        let url = lockattr_tests::with_query(
            &server.url_through(&proxy),
            "ttl=1h&response_timeout=1h&shutdown_timeout=1h",
        );
        let mut node = Node::run(lockattr(&url, &["run", "--wait", "1h", "nightly", "--", "true"]));
        let queued = async || manager.held_locks().await.unwrap()[0].waiting == 1;
        eventually("it is queued", queued).await;
        proxy.always("release", Fault::HoldRequest);
        node.interrupt_signal();
        eventually("it leaves the queue", async || proxy.seen("release") > 0).await;
        node.interrupt_signal();
        let began = Instant::now();
        assert_eq!(node.finish().await.code(), Some(130));
        proxy.pass();
        let left = async || manager.held_locks().await.unwrap()[0].waiting == 0;
        eventually("it has left the queue", left).await;
        began.elapsed() < SHUTDOWN_TIMEOUT / 2
    };
    eventually("it ends at once", ends_at_once).await;
    guard.release().await.unwrap();
}

/// The command ignores SIGTERM, so its output would show that it was started.
#[tokio::test]
async fn a_run_that_stood_still_past_its_lease_does_not_start_the_command() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let mut seen = 0;
    for attempt in 0..500 {
        let key = format!("nightly:{attempt}");
        let mut command = std::process::Command::new("env");
        command.args([
            "--ignore-signal=TERM",
            crate::support::PROGRAM,
            "run",
            "--kill-after",
            "1h",
        ]);
        command.args([&key, "--", "echo", "ran"]).env("LOCKATTR_URL", server.url_with("ttl=300ms"));
        let mut node = Node::run(command);
        let name = format!("lock:{key}");
        // Polled, because the lock is held for only some milliseconds if nothing stops the run.
        let held = async { while cli.value(&name).await.is_none() {} };
        if timeout(Duration::from_secs(2), held).await.is_err() {
            node.finish().await;
            continue;
        }
        node.stop_signal();
        // Between the grant and the command, only the leash is started, which takes a few milliseconds.
        // Earlier, the process may not have received its grant, and acquires the lock again when it
        // continues.
        let children = children(node.id()).await;
        let in_between =
            !children.is_empty() && children.iter().all(|child| child.contains("leash"));
        if in_between {
            seen += 1;
            eventually("its lease ends", async || cli.value(&name).await.is_none()).await;
        }
        node.continue_signal();
        if in_between {
            assert_eq!(node.line_within(HUNG).await, None, "it ran");
            assert_eq!(node.finish().await.code(), Some(76));
            break;
        }
        node.finish().await;
    }
    assert!(seen > 0, "never seen in between");
    assert_nothing_left(&server).await;
}

/// The arguments of each child of a process.
async fn children(pid: u32) -> Vec<String> {
    let mut ps = Command::new("ps");
    ps.args(["--no-headers", "-o", "args", "--ppid", &pid.to_string()]).stdin(Stdio::null());
    let listed = ps.output().await.expect("ps").stdout;
    String::from_utf8(listed).unwrap().lines().map(str::to_owned).collect()
}
