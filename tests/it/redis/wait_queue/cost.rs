//! The cost of the queue: two commands for each hand-off between processes, and a request now and
//! then.
//!
//! A manager stands for a process: its connections, subscription and wait queue are shared with no
//! other manager, so the server cannot tell the two apart.

use lockattr_tests::{Proxy, RedisServer, eventually};
use tokio::time::Instant;

use super::*;

/// Commands from clients; commands inside scripts are counted under names other than `evalsha`.
async fn sent(cli: &Cli) -> u32 {
    let calls = cli.commandstats().await.get("evalsha").copied().unwrap_or_default();
    calls.try_into().unwrap()
}

/// Each of `managers` has one task, which joins the end of the queue again and again.
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
        wait_until_queued(&cli, place).await;
    }
    // Each task joins the queue and is handed the lock by a release; those in the queue have joined
    // already.
    let before = sent(&cli).await - u32::try_from(managers).unwrap();
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    all_have_worked(LIMIT, vec![waiting]).await;
    let hand_offs = managers * rounds;
    assert_eq!(witness.count(), hand_offs as u64);
    // The last release has no waiter to hand off to.
    let commands = sent(&cli).await - before - 1;
    drop(first);
    assert_no_trace(&server).await;
    f64::from(commands) / f64::from(u32::try_from(hand_offs).unwrap())
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "figures for the log")]
async fn a_hand_off_between_processes_costs_two_commands_whatever_their_number() {
    for managers in [2, 16, 64] {
        let commands = commands_per_hand_off(managers).await;
        eprintln!("{managers} processes: {commands:.3} commands per hand-off");
        // A waiter also asks every few seconds, and a slow machine takes seconds for all hand-offs. If
        // each release made all waiters ask, 64 would send more than sixty.
        // One may join the queue after the count has begun.
        assert!((1.9..3.0).contains(&commands), "{commands} with {managers}");
    }
}

/// Requests per second of a process with `tasks` waiting tasks, for a lock that another process
/// holds, behind `place` waiting processes.
async fn polls_per_second(tasks: usize, place: usize) -> f64 {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let mut crowds = Vec::new();
    for before in 1..=place {
        crowds.push(crowd(&manager(&server, LONG).await, &witness, 1));
        wait_until_queued(&cli, before).await;
    }
    let proxy = Proxy::start(server.addr()).await;
    let url = format!("{}?{LONG}&retry_delay=200ms", server.url_through(&proxy));
    let next = LockManager::connect(url).await.unwrap();
    crowds.push(crowd(&next, &witness, tasks));
    wait_until_queued(&cli, place + 1).await;
    let (began, before) = (Instant::now(), proxy.seen("acquire"));
    eventually(LIMIT, "it polls", async || proxy.seen("acquire") >= before + 5).await;
    let looks = f64::from(u32::try_from(proxy.seen("acquire") - before).unwrap());
    let per_second = looks / began.elapsed().as_secs_f64();
    assert_eq!(witness.count(), 0);
    holder.release().await.unwrap();
    all_have_worked(LIMIT, crowds).await;
    drop((first, next));
    assert_no_trace(&server).await;
    per_second
}

/// The head of the queue asks once in each `retry_delay`; every other process asks less often, the
/// more waiters are before it. A slow machine asks later, but never more often.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "figures for the log")]
async fn a_waiting_process_polls_once_per_retry_delay_however_many_tasks_wait() {
    for (tasks, place, most) in [(1, 0, 5.5), (16, 0, 5.5), (16, 3, 1.6)] {
        let looks = polls_per_second(tasks, place).await;
        eprintln!("{tasks} tasks, {place} before them: {looks:.2} looks in a second");
        assert!(looks <= most, "{looks} with {tasks} tasks and {place} before them");
    }
}
