//! Releases without a script, on servers with a command that compares and deletes.
//!
//! They need Redis 8.4 or Valkey 9.0: the programs that `LOCKATTR_NEWEST_REDIS` and
//! `LOCKATTR_NEWEST_VALKEY` name. If neither is set, these tests print that and check nothing.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions, LostReason};
use lockattr_tests::{
    Cli, Fault, Proxy, RedisServer, StoppedClock, assert_nothing_left, eventually, in_time,
    with_query,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::RIGHTS;

/// A server program, and its command.
struct Newer {
    program: PathBuf,
    command: &'static str,
}

#[expect(clippy::print_stderr, reason = "the log must say what was skipped")]
fn newer() -> Vec<Newer> {
    let known = [("LOCKATTR_NEWEST_REDIS", "delex"), ("LOCKATTR_NEWEST_VALKEY", "delifeq")];
    let newer = known.into_iter().filter_map(|(variable, command)| {
        let Some(program) = std::env::var_os(variable) else {
            eprintln!("NOT TESTED: releases by `{command}`. Set {variable} to such a server.");
            return None;
        };
        Some(Newer { program: program.into(), command })
    });
    newer.collect()
}

impl Newer {
    async fn server(&self) -> RedisServer {
        RedisServer::builder().program(&self.program).start().await
    }
}

async fn connect(url: &str) -> LockManager {
    LockManager::connect(with_query(url, "connections=1&ttl=1h&wait=10h&heartbeat=10h"))
        .await
        .unwrap()
}

async fn acquire(manager: &LockManager) -> LockGuard {
    manager.acquire("a", LockOptions::new()).await.unwrap()
}

async fn scripts(cli: &Cli) -> u64 {
    cli.commandstats().await.get("evalsha").copied().unwrap_or_default()
}

/// The number of scripts for one acquisition and release, where the connection has acquired before:
/// none, or one.
async fn scripts_of_a_round(manager: &LockManager, cli: &Cli) -> u64 {
    let before = scripts(cli).await;
    acquire(manager).await.release().await.unwrap();
    scripts(cli).await - before
}

#[tokio::test]
async fn the_usual_release_needs_no_script() {
    for newer in newer() {
        let server = newer.server().await;
        let (cli, manager) = (server.cli().await, connect(&server.url()).await);
        acquire(&manager).await.release().await.unwrap();
        let tried = cli.commandstats().await[newer.command];
        for round in 1..=20 {
            assert_eq!(scripts_of_a_round(&manager, &cli).await, 0);
            assert_eq!(cli.commandstats().await[newer.command], tried + round);
        }
        assert_nothing_left(&server).await;
    }
}

/// Red without: the script where the server's command refuses (`NeedsScript`), and the comparison.
#[tokio::test]
async fn a_lock_that_is_not_ours_any_more_is_left_alone() {
    for newer in newer() {
        let server = newer.server().await;
        let (cli, manager) = (server.cli().await, connect(&server.url()).await);
        let others: [&[&str]; 3] = [
            &["DEL", "lock:a"],
            &["SET", "lock:a", "another's"],
            // Another type, as a shared lock has.
            &[
                "EVAL",
                "redis.call('DEL', KEYS[1]) redis.call('ZADD', KEYS[1], 1, 'x')",
                "1",
                "lock:a",
            ],
        ];
        for other in others {
            let guard = acquire(&manager).await;
            cli.query::<redis::Value>(other).await;
            let before = cli.keys("lock:*").await;
            let released = guard.release().await;
            let Err(Error::Lost { reason, .. }) = released else { panic!("{released:?}") };
            assert_eq!(reason, LostReason::Taken);
            assert_eq!(cli.keys("lock:*").await, before, "{other:?}");
            cli.query::<()>(&["DEL", "lock:a"]).await;
        }
        assert_nothing_left(&server).await;
    }
}

/// The holder's plain release fails if it has not been notified of the waiter. If it has, it sends
/// the script at once: a hand-off costs one round trip, as it does without such a command.
///
/// Red without: the script behind a deletion that failed (`Deleted::NeedsScript`); the record that
/// the notification leaves (`Contended`).
#[tokio::test]
async fn the_next_in_the_queue_gets_it_at_once_whether_or_not_its_holder_knows_that_it_waits() {
    for (newer, unknown) in newer().iter().flat_map(|newer| [(newer, true), (newer, false)]) {
        // A holder remembers for a moment that another waits.
        let clock = StoppedClock::new();
        let world = World::new(newer, unknown).await;
        world.held.release().await.unwrap();
        // By the server's command, if at all, and by the script.
        assert_eq!(world.proxy.seen("release"), 1 + usize::from(unknown), "unknown: {unknown}");
        drop(clock);
        let granted = in_time(world.waiter).await;
        granted.unwrap().release().await.unwrap();
        assert_nothing_left(&world.server).await;
    }
}

/// A holder behind a proxy, and another manager that waits in the queue.
struct World {
    server: RedisServer,
    proxy: Proxy,
    held: LockGuard,
    waiter: JoinHandle<LockGuard>,
    _managers: [LockManager; 2],
}

impl World {
    /// Returns once the holder received the notification that another waits. It does not arrive if the
    /// waiter is to stay `unknown`.
    async fn new(newer: &Newer, unknown: bool) -> Self {
        let server = newer.server().await;
        let proxy = Proxy::start(server.addr()).await;
        let (one, other) =
            (connect(&server.url_through(&proxy)).await, connect(&server.url()).await);
        let held = acquire(&one).await;
        if unknown {
            proxy.swallow_messages(1);
        }
        let waiting = other.clone();
        let waiter = tokio::spawn(async move { acquire(&waiting).await });
        eventually("notified", async || proxy.seen("message") == 1).await;
        // This reply comes after it, on the same connection.
        one.holder("another").await.expect("the store");
        Self { server, proxy, held, waiter, _managers: [one, other] }
    }
}

/// The lock is free, and the script that hands it off does not arrive.
///
/// Red without: an error as the result of a release that could not hand off.
#[tokio::test]
async fn the_next_in_the_queue_gets_it_though_the_holder_is_cut_off_while_it_hands_off() {
    for newer in newer() {
        let world = World::new(&newer, true).await;
        world.proxy.next("release", Fault::Delay(Duration::ZERO));
        world.proxy.next("release", Fault::CutBefore);
        assert!(matches!(world.held.release().await, Err(Error::Store { .. })));
        let granted = in_time(world.waiter).await;
        granted.unwrap().release().await.unwrap();
        assert_nothing_left(&world.server).await;
    }
}

/// As after a failover to a server that was not updated: the same address, another program.
///
/// Red without: detection for each new connection (`Native::find` in `establish`), or remembering
/// there that the server refused (`Native::refused`).
#[tokio::test]
async fn a_server_replaced_by_one_without_the_command_is_sent_scripts() {
    for newer in newer() {
        let directory = TempDir::new().unwrap();
        let program = directory.path().join("server");
        let becomes = |exchanged: &Path, arguments: &str| {
            let script = format!("#!/bin/sh\nexec {} \"$@\" {arguments}\n", exchanged.display());
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        };
        becomes(&newer.program, "");
        let server = RedisServer::builder().program(&program).start().await;
        let manager = connect(&server.url()).await;
        assert_eq!(scripts_of_a_round(&manager, &server.cli().await).await, 1);
        let without = format!("--rename-command {} no-more", newer.command);
        for (exchanged, arguments, expected) in
            [(newer.program.as_path(), without.as_str(), 1), (newer.program.as_path(), "", 0)]
        {
            becomes(exchanged, arguments);
            server.restart().await;
            // The first call may meet the end of the old connection.
            acquire(&manager).await.release().await.unwrap();
            assert_eq!(scripts_of_a_round(&manager, &server.cli().await).await, expected);
            assert_nothing_left(&server).await;
        }
    }
}

/// With this right a release costs less; without it everything still works.
///
/// Red without: `NoPerm` in `outcome_of_error`, and what it remembers (one more round trip for each
/// release).
#[tokio::test]
async fn a_user_without_the_right_to_the_command_uses_scripts() {
    for newer in newer() {
        for (rights, expected) in [(RIGHTS.into(), 1), (format!("{RIGHTS} +{}", newer.command), 0)]
        {
            let server = RedisServer::builder().program(&newer.program);
            let server = server.user("locker", "s3cret", &rights).start().await;
            let cli = server.cli().await;
            let manager = connect(&server.url_as("locker", "s3cret")).await;
            acquire(&manager).await.release().await.unwrap();
            for _ in 0..3 {
                assert_eq!(scripts_of_a_round(&manager, &cli).await, expected);
            }
            let refused: Vec<HashMap<String, redis::Value>> = cli.query(&["ACL", "LOG"]).await;
            let mut refused = refused.iter().map(|entry| (&entry["object"], &entry["count"]));
            let refused = refused.find(|(what, _)| format!("{what:?}").contains(newer.command));
            let once = (expected == 1).then_some(&redis::Value::Int(1));
            assert_eq!(refused.map(|(_, count)| count), once);
            assert_nothing_left(&server).await;
        }
    }
}

/// Tair's command has Valkey's arguments and another name; the tests cannot start a Tair.
#[tokio::test]
async fn a_server_that_names_the_command_as_tair_does_is_sent_that_name() {
    for newer in newer().into_iter().filter(|newer| newer.command == "delifeq") {
        let server = RedisServer::builder().program(&newer.program);
        let server = server.line("rename-command delifeq cad").start().await;
        let (cli, manager) = (server.cli().await, connect(&server.url()).await);
        assert_eq!(scripts_of_a_round(&manager, &cli).await, 1);
        let guard = acquire(&manager).await;
        cli.query::<()>(&["SET", "lock:a", "another's"]).await;
        assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
        assert_eq!(cli.value("lock:a").await.as_deref(), Some("another's"));
    }
}
