//! What the queue costs: two commands for each hand-off between processes, and a look now and then.
//!
//! A manager stands for a process: connections, a subscriber and a line are its own, and nothing of it
//! is shared with another manager, so the server cannot tell the two apart.

use lockattr_tests::{Proxy, RedisServer, eventually};
use tokio::time::Instant;

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

#[tokio::test]
#[expect(clippy::print_stderr, reason = "the figures, for whoever wants to see them")]
async fn a_hand_off_between_processes_costs_two_commands_whatever_their_number() {
    for managers in [2, 16, 64] {
        let commands = commands_per_hand_off(managers).await;
        eprintln!("{managers} processes: {commands:.3} commands per hand-off");
        assert!((2.0..=2.2).contains(&commands), "{commands} with {managers}");
    }
}

/// Questions in a second of a process with so many waiting tasks, for a lock that is held elsewhere; `place`
/// processes wait before it.
async fn looks_in_a_second(tasks: usize, place: usize) -> f64 {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let mut crowds = Vec::new();
    for before in 1..=place {
        crowds.push(crowd(&manager(&server, LONG).await, &witness, 1));
        stand_in_line(&cli, before).await;
    }
    let proxy = Proxy::start(server.addr()).await;
    let url = format!("{}?{LONG}&retry_delay=200ms", server.url_through(&proxy));
    let next = LockManager::connect(url).await.unwrap();
    crowds.push(crowd(&next, &witness, tasks));
    stand_in_line(&cli, place + 1).await;
    let (began, before) = (Instant::now(), proxy.seen("acquire"));
    eventually(LIMIT, "it looks", async || proxy.seen("acquire") >= before + 5).await;
    let looks = f64::from(u32::try_from(proxy.seen("acquire") - before).unwrap());
    let per_second = looks / began.elapsed().as_secs_f64();
    assert_eq!(witness.count(), 0);
    holder.release().await.unwrap();
    all_have_worked(LIMIT, crowds).await;
    drop((first, next));
    assert_no_trace(&server).await;
    per_second
}

/// One question each `retry_delay`, if it is the head of the queue; each other waits the longer the more
/// are before it. A slow machine asks later, and never more often.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "the figures, for whoever wants to see them")]
async fn a_process_that_waits_looks_once_in_a_retry_delay_however_many_tasks_wait() {
    for (tasks, place, most) in [(1, 0, 5.5), (16, 0, 5.5), (16, 3, 1.6)] {
        let looks = looks_in_a_second(tasks, place).await;
        eprintln!("{tasks} tasks, {place} before them: {looks:.2} looks in a second");
        assert!(looks <= most, "{looks} with {tasks} tasks and {place} before them");
    }
}
