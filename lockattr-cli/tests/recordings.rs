//! The recordings of the docs, made in a real terminal: each is a test, and `cargo xtask recordings`
//! saves its screen as a picture in `docs/recordings/`.

use std::path::Path;

use futures_util::future::try_join_all;
use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{RedisServer, eventually, force_release};

use crate::support::{Two, service};
use crate::svg;
use crate::terminal::Terminal;

const LOCKS: u32 = 10_000;

fn record(terminal: &Terminal, name: &str, title: &str) {
    if std::env::var_os("LOCKATTR_RECORD").is_some() {
        let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recordings");
        std::fs::write(pictures.join(name), svg::picture(terminal.screen(), title)).unwrap();
    }
}

/// Ten thousand locks of five services, some of which have waiters.
struct Fleet {
    _guards: Vec<LockGuard>,
    managers: Vec<LockManager>,
}

const SERVICES: [(&str, &str, &str); 5] = [
    ("checkout", "cart", "shop::cart::freeze"),
    ("inventory", "product", "inventory::stock::deduct"),
    ("billing", "invoice", "billing::invoice::settle"),
    ("accounts", "account", "bank::transfer"),
    ("reports", "report", "reports::nightly"),
];

impl Fleet {
    async fn on(server: &RedisServer) -> Self {
        let (mut guards, mut managers) = (Vec::new(), Vec::new());
        let each = LOCKS / 5;
        for (name, kind, function) in SERVICES {
            let manager = service(server, name).await;
            let options = || LockOptions::new().function(function);
            let acquisitions = (0..each)
                .map(|number| manager.acquire(format!("{kind}:{}", 40_000 + number), options()));
            guards.extend(try_join_all(acquisitions).await.unwrap());
            managers.push(manager);
        }
        // Other services wait for some of the locks.
        let mut expected = 0;
        for (index, (_, kind, _)) in SERVICES.into_iter().enumerate() {
            for number in 0..8 {
                for (other, manager) in managers.iter().enumerate() {
                    if other == index || other > (index + number) % 5 {
                        continue;
                    }
                    expected += 1;
                    let (manager, key) = (manager.clone(), format!("{kind}:{}", 40_100 + number));
                    tokio::spawn(
                        async move { manager.acquire(key, LockOptions::new()).await.ok() },
                    );
                }
            }
        }
        eventually("callers wait", async || {
            let held = managers[0].held_locks().await.unwrap();
            held.iter().map(|lock| lock.waiting).sum::<u64>() == expected
        })
        .await;
        Self { _guards: guards, managers }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_locks_are_listed_in_a_terminal() {
    let server = RedisServer::start().await;
    let fleet = Fleet::on(&server).await;
    let mut terminal = Terminal::shell(&server.url()).await;
    terminal.types("lockattr ls | wc -l\r").await;
    terminal.shows("\n10001\n$").await;
    terminal.types("lockattr ls --sort waiting | head -16\r").await;
    terminal.shows("\nKEY ").await;
    terminal.shows("  WAITING\n").await;
    terminal.shows("\n$ lockattr ls --sort waiting | head -16\n").await;
    terminal.prompts().await;
    terminal.types("lockattr who product:41234\r").await;
    terminal.shows("`product:41234` is held by inventory on ").await;
    terminal.prompts().await;
    record(&terminal, "ls.svg", "lockattr ls, with 10,000 locks held");
    drop(fleet);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_locks_are_watched_in_a_terminal() {
    let server = RedisServer::start().await;
    let fleet = Fleet::on(&server).await;
    let mut terminal = Terminal::shell(&server.url()).await;
    terminal.types("lockattr watch\r").await;
    terminal.shows("10,000 held · ").await;
    terminal.shows("\naccount:40000  accounts@").await;
    terminal.types("ssss").await;
    terminal.shows("sorted by waiting").await;
    terminal.types("jjj").await;
    terminal.shows("4 of 10,000").await;
    record(&terminal, "watch.svg", "lockattr watch, with 10,000 locks held");

    // The view shows what is held now, and not what was held at the beginning.
    assert!(force_release(&fleet.managers[4], "report:40007").await.unwrap());
    terminal.shows("9,999 held · ").await;
    terminal.types("/report:4000?").await;
    terminal.shows("9 with report:4000?").await;
    terminal.types("\r").await;
    terminal.types("q").await;
    // The screen is restored.
    terminal.shows("\n$ lockattr watch\n$").await;
    assert!(!terminal.screen().alternate_screen() && !terminal.screen().hide_cursor());
}

#[tokio::test]
async fn a_run_that_loses_its_lease_kills_its_command_group_and_all() {
    let server = RedisServer::start().await;
    let mut terminal = Terminal::shell(&server.url_with("ttl=12s")).await;
    let script = "sleep 1000 & ps -o pid,ppid,pgid,args; echo $$ $!; wait";
    terminal.types(&format!("lockattr run nightly -- sh -c '{script}'\r")).await;
    terminal.shows("ps -o pid,ppid,pgid,args\n").await;
    let ends_the_list = |line: &str| line.split(' ').all(|word| word.parse::<u32>().is_ok());
    terminal.until(|text| text.lines().skip(3).any(ends_the_list)).await;
    let text = terminal.text();
    let two = Two::parse(text.lines().skip(3).find(|line| ends_the_list(line)).unwrap());
    assert!(two.are_there());

    let other = service(&server, "operators").await;
    assert!(force_release(&other, "nightly").await.unwrap());
    terminal.shows("the lease on `nightly` was lost").await;
    terminal.prompts().await;
    two.end().await;
    terminal.types("echo $?; ps -o pid,ppid,pgid,args\r").await;
    terminal.shows("\n76\n").await;
    terminal.prompts().await;
    record(&terminal, "run.svg", "lockattr run, whose lease is taken away");
}
