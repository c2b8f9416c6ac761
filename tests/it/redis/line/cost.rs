//! What the line costs: two commands for each hand-off between processes, and none for waiting.
//!
//! A manager stands for a process: connections, an inbox and a line are its own, and nothing of it
//! is shared with another manager, so the server cannot tell the two apart.

use lockattr_tests::{Proxy, RedisServer, eventually};
use tokio::time::{Instant, sleep};

use super::*;

/// Commands that clients sent: what scripts do is counted under other names than `evalsha`.
async fn sent(cli: &Cli) -> u32 {
    let calls = cli.commandstats().await.get("evalsha").copied().unwrap_or_default();
    calls.try_into().unwrap()
}

/// So many managers with one task each, which goes to the end of the line again and again.
async fn commands_per_hand_off(managers: usize) -> f64 {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let (mut waiting, rounds) = (JoinSet::new(), 10 + 200 / managers);
    for place in 1..=managers {
        let (next, witness) = (manager(&server, LONG).await, witness.clone());
        waiting.spawn(async move {
            for _ in 0..rounds {
                let guard = acquire(&next).await;
                witness.sees(&guard).await;
                guard.release().await.unwrap();
            }
        });
        stand_in_line(&cli, place).await;
    }
    // Each comes, and is handed the lock by a release: those who stand there have come already.
    let before = sent(&cli).await - u32::try_from(managers).unwrap();
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    all_have_worked(LIMIT, vec![waiting]).await;
    let hand_offs = managers * rounds;
    assert_eq!(witness.count(), hand_offs as u64);
    // The last one's release hands nothing to anybody.
    let commands = sent(&cli).await - before - 1;
    drop(first);
    assert_no_trace(&server).await;
    f64::from(commands) / f64::from(u32::try_from(hand_offs).unwrap())
}

/// Red without: a look at the message before the store is asked.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "the figures, for whoever wants to see them")]
async fn a_hand_off_between_processes_costs_two_commands_whatever_their_number() {
    for managers in [2, 16, 64] {
        let commands = commands_per_hand_off(managers).await;
        eprintln!("{managers} processes: {commands:.3} commands per hand-off");
        assert!((2.0..=2.2).contains(&commands), "{commands} with {managers}");
    }
}

/// The next renewal is due after 10 s, and so is nothing else.
///
/// Red without: the pause of those in line, as long as nothing is told.
#[tokio::test]
async fn waiting_costs_no_commands_while_nothing_changes() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, "ttl=30s&wait=60s").await;
    let holder = acquire(&first).await;
    let next = manager(&server, LONG).await;
    let tasks = crowd(&next, &witness, 16);
    stand_in_line(&cli, 1).await;
    let before = sent(&cli).await;
    sleep(Duration::from_secs(3)).await;
    assert_eq!(sent(&cli).await, before, "commands of those who wait");
    assert_eq!(witness.count(), 0);
    holder.release().await.unwrap();
    all_have_worked(SOON, vec![tasks]).await;
    drop((first, next));
    assert_no_trace(&server).await;
}

/// Questions of a process with so many waiting tasks, for each TTL of a holder elsewhere.
async fn questions_per_ttl(tasks: usize) -> f64 {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, "ttl=1s&wait=60s").await;
    let holder = acquire(&first).await;
    let proxy = Proxy::start(server.addr()).await;
    let url = format!("{}?{LONG}", server.url_through(&proxy));
    let next = LockManager::connect(url).await.unwrap();
    let tasks = crowd(&next, &witness, tasks);
    stand_in_line(&cli, 1).await;
    let (began, before) = (Instant::now(), proxy.seen("acquire"));
    eventually(LIMIT, "it asks", async || proxy.seen("acquire") >= before + 5).await;
    let asked = f64::from(u32::try_from(proxy.seen("acquire") - before).unwrap());
    let per_ttl = asked / began.elapsed().as_secs_f64();
    assert_eq!(witness.count(), 0);
    holder.release().await.unwrap();
    all_have_worked(SOON, vec![tasks]).await;
    drop((first, next));
    assert_no_trace(&server).await;
    per_ttl
}

/// The lease is looked after when it would have ended, and it was renewed at a third of it: so a
/// question comes after two thirds of a TTL at the earliest.
///
/// Red without: one of a process that stands in line for all.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "the figures, for whoever wants to see them")]
async fn a_process_that_waits_looks_once_in_a_ttl_however_many_tasks_wait() {
    for tasks in [1, 16] {
        let questions = questions_per_ttl(tasks).await;
        eprintln!("{tasks} tasks: {questions:.2} questions per TTL");
        assert!(questions <= 1.6, "{questions} with {tasks} tasks");
    }
}
