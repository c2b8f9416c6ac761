//! The cost of the queue: two commands for each hand-off between processes, and a request now and
//! then.
//!
//! A manager stands for a process: its connections, subscription and wait queue are shared with no
//! other manager, so the server cannot tell the two apart.

use std::sync::Arc;

use lockattr_tests::{Proxy, RedisServer, eventually, in_time, with_query};
use tokio::time::Instant;

use super::*;

/// How long a claim waits before it asks again, if it is not for `retry_delay`: a third of the time
/// that its entry lasts without a request.
const RECHECK: Duration = Duration::from_secs(5);

/// How long a process remembers that others wait for a lock. Then it tries first to release the lock
/// as if no process waited, which is one command in vain.
const REMEMBERED: Duration = Duration::from_millis(300);

/// Commands from clients; commands inside scripts are counted under names other than `evalsha`.
async fn sent(cli: &Cli) -> usize {
    let calls = cli.commandstats().await.get("evalsha").copied().unwrap_or_default();
    calls.try_into().unwrap()
}

/// What some hand-offs between processes cost.
#[derive(Debug)]
struct Cost {
    hand_offs: usize,
    commands: usize,
    /// How many more may have been sent because processes waited for long: by those that asked again,
    /// and by those that no longer remembered, when they released the lock, that others wait.
    after_long_waits: usize,
}

/// Each of `managers` has one task, which joins the end of the queue again and again.
///
/// A holder releases the lock when all others have joined. Otherwise, one that is late would find
/// the lock free, which is no hand-off.
async fn cost_of_hand_offs(managers: usize) -> Cost {
    let server = RedisServer::start().await;
    let (cli, witness) = (Arc::new(server.cli().await), Witness::default());
    let query = format!("{LONG}&retry_delay=60s");
    let first = manager(&server, &query).await;
    let holder = acquire(&first).await;
    let (mut waiting, rounds) = (JoinSet::new(), 10 + 200 / managers);
    let hand_offs = managers * rounds;
    let mut processes = Vec::new();
    for _ in 0..managers {
        processes.push(manager(&server, &query).await);
    }
    let began = Instant::now();
    for (next, place) in processes.into_iter().zip(1..) {
        let (witness, all) = (witness.clone(), cli.clone());
        waiting.spawn(async move {
            let (mut at_the_end, mut forgot) = (None, 0);
            for _ in 0..rounds {
                let joined = Instant::now();
                let guard = acquire(&next).await;
                witness.sees(&guard).await;
                // Each of the others joins as often as this one.
                let later = hand_offs - usize::try_from(witness.count()).unwrap();
                while queued(&all, "a").await < later.min(managers - 1) {}
                if later == 0 {
                    at_the_end = Some(sent(&all).await);
                }
                guard.release().await.unwrap();
                forgot += usize::from(joined.elapsed() >= REMEMBERED);
            }
            (at_the_end, forgot)
        });
        wait_until_queued(&cli, place).await;
    }
    // Those in the queue have joined already.
    let before = sent(&cli).await - managers;
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    let ended = in_time(waiting.join_all()).await;
    // So often may each process have asked again since it first joined.
    let waited = usize::try_from(began.elapsed().as_secs() / RECHECK.as_secs()).unwrap();
    let forgot: usize = ended.iter().map(|(_, forgot)| forgot).sum();
    assert_eq!(witness.count(), hand_offs as u64);
    // The last holder has counted before its release, which hands off to no waiter.
    let at_the_end = ended.iter().find_map(|(count, _)| *count).expect("one was the last");
    drop(first);
    assert_no_trace(&server).await;
    Cost { hand_offs, commands: at_the_end - before, after_long_waits: managers * waited + forgot }
}

/// One that joins the queue, and one that releases the lock to it. The number is exact where waits
/// are short. On a slow machine a release sends one command more, and a waiter one in [`RECHECK`]. If
/// each release made all waiters ask, there would be as many for each hand-off as processes.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "figures for the log")]
async fn a_hand_off_between_processes_costs_two_commands_whatever_their_number() {
    for managers in [2, 16, 64] {
        let cost = cost_of_hand_offs(managers).await;
        eprintln!("{managers} processes: {cost:?}");
        let least = 2 * cost.hand_offs;
        assert!(
            (least..=least + cost.after_long_waits).contains(&cost.commands),
            "{managers}: {cost:?}"
        );
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
    let url = with_query(&server.url_through(&proxy), &format!("{LONG}&retry_delay=200ms"));
    let next = LockManager::connect(url).await.unwrap();
    crowds.push(crowd(&next, &witness, tasks));
    wait_until_queued(&cli, place + 1).await;
    let (began, before) = (Instant::now(), proxy.seen("acquire"));
    eventually("it polls", async || proxy.seen("acquire") >= before + 5).await;
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
