//! `lockattr run`: which commands run, and with which exit codes.

use lockattr_tests::{assert_nothing_left, eventually};

use crate::support::{at_once, renewing_server, running, said, server, service};

#[tokio::test]
async fn the_exit_code_of_the_command_is_ours() {
    let (server, url) = server().await;
    for (words, expected) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["no-such-command"], 127),
        (&["/"], 126),
    ] {
        let said = said(&url, &[&["run", "nightly", "--"], words].concat()).await;
        assert_eq!(said.code, Some(expected), "{words:?}: {said:?}");
        assert_eq!(said.err.is_empty(), ![126, 127].contains(&expected), "{said:?}");
    }
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn the_command_knows_its_key_and_a_greater_token_each_time() {
    let (server, url) = server().await;
    let script = "echo $LOCKATTR_KEY $LOCKATTR_FENCING_TOKEN";
    let mut last = 0;
    for _ in 0..3 {
        let said = said(&url, &["run", "nightly", "--", "sh", "-c", script]).await;
        let token = said.out.trim_end().strip_prefix("nightly ").unwrap().parse::<u64>().unwrap();
        assert!(token > last, "{token} after {last}");
        last = token;
    }
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn the_command_does_not_have_the_url_with_its_password_unless_it_is_asked_for() {
    let server = lockattr_tests::RedisServer::builder().password("s3cr3t").start().await;
    let url = server.url();
    assert!(url.contains("s3cr3t"));
    // The second is the way in which a command asks what called it.
    let script = "env; echo; tr '\\0' ' ' < /proc/$PPID/cmdline";
    for (words, has_it) in [(&["run"][..], false), (&["run", "--pass-url"], true)] {
        let said = said(&url, &[words, &["nightly", "--", "sh", "-c", script]].concat()).await;
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
        assert!(said.out.contains("LOCKATTR_KEY=nightly"), "{said:?}");
        assert_eq!(said.out.contains(&format!("LOCKATTR_URL={url}")), has_it, "{said:?}");
        assert_eq!(said.out.contains("s3cr3t"), has_it, "{said:?}");
    }
}

#[tokio::test]
async fn of_two_at_once_one_runs() {
    let (server, url) = server().await;
    let mut first = running(&url, &["nightly"], "echo up; read line");
    assert_eq!(first.line().await, "up");

    let second = said(&url, &["run", "nightly", "--", "echo", "ran"]).await;
    assert_eq!((second.code, second.out.as_str()), (Some(75), ""));
    assert!(second.err.starts_with("lockattr: `nightly` is held by lockattr on "), "{second:?}");
    assert!(second.err.contains(" in sh, for "), "{second:?}");
    assert_eq!(second.err.lines().count(), 1);

    let quiet = said(&url, &["run", "--busy-exit", "0", "nightly", "--", "echo", "ran"]).await;
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (Some(0), "", ""));
    let other = said(&url, &["run", "--busy-exit", "9", "nightly", "--", "echo", "ran"]).await;
    assert_eq!(other.code, Some(9));
    let elsewhere = said(&url, &["run", "weekly", "--", "echo", "ran"]).await;
    assert_eq!((elsewhere.code, elsewhere.out.as_str()), (Some(0), "ran\n"));

    first.say("done").await;
    assert_eq!(first.finish().await.code(), Some(0));
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_waiter_runs_when_the_first_has_ended() {
    let (server, url) = server().await;
    let manager = service(&server, "orders").await;
    let guard = manager.acquire("nightly", at_once()).await.unwrap();
    let mut second = running(&url, &["--wait", "1m", "nightly"], "echo up");
    until_queued(&manager).await;
    guard.release().await.unwrap();
    assert_eq!(second.line().await, "up");
    assert!(second.finish().await.success());
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_process_that_is_notified_to_end_while_it_waits_leaves_the_queue() {
    let (server, url) = server().await;
    let manager = service(&server, "orders").await;
    let guard = manager.acquire("nightly", at_once()).await.unwrap();
    let mut second = running(&url, &["--wait", "1m", "nightly"], "echo up");
    until_queued(&manager).await;
    second.interrupt_signal();
    assert_eq!(second.finish().await.code(), Some(130));
    assert_eq!(manager.held_locks().await.unwrap()[0].waiting, 0);
    guard.release().await.unwrap();
    assert_nothing_left(&server).await;
}

async fn until_queued(manager: &lockattr::LockManager) {
    eventually("the second run is queued", async || {
        manager.held_locks().await.unwrap().first().is_some_and(|lock| lock.waiting == 1)
    })
    .await;
}

#[tokio::test]
async fn the_lease_is_renewed_while_the_command_runs() {
    let (server, url) = renewing_server().await;
    let mut node = running(&url, &["nightly"], "echo up; read line");
    assert_eq!(node.line().await, "up");
    let cli = server.cli().await;
    let mut left = cli.pttl("lock:nightly").await;
    let renewed = async || {
        let before = std::mem::replace(&mut left, cli.pttl("lock:nightly").await);
        left > before
    };
    eventually("it is renewed", renewed).await;
    node.say("done").await;
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_store_that_is_down_is_not_a_lock_that_is_busy() {
    let (server, url) = server().await;
    server.kill();
    for wait in ["0s", "300ms"] {
        let words = ["run", "--busy-exit", "0", "--wait", wait, "nightly", "--", "echo", "ran"];
        let said = said(&url, &words).await;
        assert_eq!((said.code, said.out.as_str()), (Some(69), ""), "{said:?}");
        assert_eq!(said.err.lines().count(), 1, "{said:?}");
    }
}

#[tokio::test]
async fn a_short_command_keeps_the_lock_for_the_clocks_that_are_late() {
    let (_server, url) = server().await;
    let words = ["run", "--hold-at-least", "1m", "nightly", "--", "true"];
    assert_eq!(said(&url, &words).await.code, Some(0));
    let late = said(&url, &words).await;
    assert_eq!(late.code, Some(75), "{late:?}");
}

#[tokio::test]
async fn what_the_command_leaves_behind_is_notified() {
    let (server, url) = server().await;
    let script = "sleep 1000 >/dev/null 2>&1 & echo $!";
    let said = said(&url, &["run", "nightly", "--", "sh", "-c", script]).await;
    let pid = nix::unistd::Pid::from_raw(said.out.trim_end().parse().unwrap());
    let kept_running = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
    assert_eq!((said.code, kept_running), (Some(0), Ok(())));
    let message = "lockattr: the command left processes behind, which continue without the lock on `nightly`\n";
    assert_eq!(said.err, message);
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn what_was_written_wrongly_is_notified_and_not_run() {
    let (server, url) = server().await;
    for words in [
        &["run", "nightly"][..],
        &["run", "--ttl", "30", "nightly", "--", "echo", "ran"],
        &["run", "--ttl", "1ms", "nightly", "--", "echo", "ran"],
        &["run", "--max-hold", "1s", "--ttl", "2s", "nightly", "--", "echo", "ran"],
        &["run", "", "--", "echo", "ran"],
    ] {
        let said = said(&url, words).await;
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{words:?}: {said:?}");
        assert!(!said.err.is_empty(), "{words:?}");
    }
    assert_nothing_left(&server).await;
}

/// Red without: the mark after exit code 0, `busy_exit` for a key that is done, or the check before the command.
#[tokio::test]
async fn once_per_a_command_that_succeeded_runs_on_no_machine_again() {
    let (server, url) = server().await;
    let run = async |words: &[&str]| {
        said(&url, &[&["run", "--once-per", "1h", "nightly", "--"], words].concat()).await
    };
    // A failure leaves the key open.
    let failed = run(&["sh", "-c", "exit 3"]).await;
    assert_eq!(failed.code, Some(3), "{failed:?}");
    assert_nothing_left(&server).await;
    let first = run(&["echo", "ran"]).await;
    assert_eq!((first.code, first.out.as_str(), first.err.as_str()), (Some(0), "ran\n", ""));

    let again = run(&["echo", "ran"]).await;
    assert_eq!((again.code, again.out.as_str()), (Some(75), ""));
    assert!(again.err.starts_with("lockattr: `nightly` is done until 20"), "{again:?}");
    let quiet = ["run", "--once-per", "1h", "--busy-exit", "0", "nightly", "--", "echo", "ran"];
    let quiet = said(&url, &quiet).await;
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (Some(0), "", ""));

    let reopened = said(&url, &["release", "--force", "nightly"]).await;
    assert_eq!(reopened.code, Some(0), "{reopened:?}");
    assert_nothing_left(&server).await;
    assert_eq!(run(&["echo", "ran"]).await.out, "ran\n");
    said(&url, &["release", "--force", "nightly"]).await;
    let long = said(&url, &["run", "--once-per", "400days", "nightly", "--", "echo", "ran"]).await;
    assert_eq!((long.code, long.out.as_str()), (Some(2), ""));
    assert!(long.err.contains("366 days"), "{long:?}");
    assert_nothing_left(&server).await;
}
