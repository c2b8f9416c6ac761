//! The cost of the queue: two commands for each hand-off between processes, and a request now and
//! then.
//!
//! A manager stands for a process: its connections, subscription and wait queue are shared with no
//! other manager, so the server cannot tell the two apart.
//!
//! The clock stands still: no timer adds a request, and none makes a process forget that others wait.

use std::sync::Arc;

use lockattr_tests::{Proxy, RedisServer, StoppedClock, eventually, in_time, with_query};

use super::*;

/// Commands from clients; commands inside scripts are counted under names other than `evalsha`.
async fn sent(cli: &Cli) -> usize {
    let calls = cli.commandstats().await.get("evalsha").copied().unwrap_or_default();
    calls.try_into().unwrap()
}

/// Waits until the manager has read all that the server has sent it.
async fn has_read_all(manager: &LockManager) {
    manager.holder("another").await.unwrap();
}

/// The commands for each hand-off. Each of `managers` has one task, which joins the end of the queue
/// again and again.
///
/// A holder releases the lock when all others have joined. Otherwise, one that is late would find
/// the lock free, which is no hand-off.
async fn cost_of_a_hand_off(managers: usize) -> f64 {
    let server = RedisServer::start().await;
    let clock = StoppedClock::new();
    let (cli, witness) = (Arc::new(server.cli().await), Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let (mut waiting, rounds) = (JoinSet::new(), 10 + 200 / managers);
    let hand_offs = managers * rounds;
    for place in 1..=managers {
        let (next, witness, all) = (manager(&server, LONG).await, witness.clone(), cli.clone());
        waiting.spawn(async move {
            let mut at_the_end = None;
            for _ in 0..rounds {
                let guard = acquire(&next).await;
                witness.sees(&guard).await;
                // Each of the others joins as often as this one.
                let later = hand_offs - usize::try_from(witness.count()).unwrap();
                while queued(&all, "a").await < later.min(managers - 1) {}
                if later == 0 {
                    at_the_end = Some(sent(&all).await);
                }
                guard.release().await.unwrap();
            }
            at_the_end
        });
        wait_until_queued(&cli, place).await;
    }
    // It knows that others wait. Otherwise it tries first to release the lock as if none did.
    has_read_all(&first).await;
    // Those in the queue have joined already.
    let before = sent(&cli).await - managers;
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    let ended = in_time(waiting.join_all()).await;
    assert_eq!(witness.count(), hand_offs as u64);
    // The last holder has counted before its release, which hands off to no waiter.
    let at_the_end = ended.into_iter().flatten().next().expect("one was the last");
    drop((first, clock));
    assert_no_trace(&server).await;
    (at_the_end - before) as f64 / hand_offs as f64
}

/// One that joins the queue, and one that releases the lock to it. If each release made all waiters
/// ask, there would be as many for each hand-off as processes.
#[tokio::test]
async fn a_hand_off_between_processes_costs_two_commands_whatever_their_number() {
    for managers in [2, 16, 64] {
        assert_eq!(cost_of_a_hand_off(managers).await, 2.0, "{managers} processes");
    }
}

/// A process with `tasks` waiting tasks waits for a lock that another process holds, behind `place`
/// waiting processes. It asks once in each `every`, and not between.
async fn polls_every(every: Duration, retry_delay: &str, tasks: usize, place: usize) {
    let server = RedisServer::start().await;
    let clock = StoppedClock::new();
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let mut crowds = Vec::new();
    for before in 1..=place {
        crowds.push(crowd(&manager(&server, LONG).await, &witness, 1));
        wait_until_queued(&cli, before).await;
    }
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), &format!("{LONG}&{retry_delay}"));
    let next = LockManager::connect(url).await.unwrap();
    crowds.push(crowd(&next, &witness, tasks));
    wait_until_queued(&cli, place + 1).await;
    // Timers are exact to a millisecond.
    let around = Duration::from_millis(2);
    for _ in 0..5 {
        has_read_all(&next).await;
        let before = proxy.seen("acquire");
        clock.advance(every - around);
        has_read_all(&next).await;
        assert_eq!(proxy.seen("acquire"), before, "{tasks} tasks, {place} before them");
        clock.advance(2 * around);
        eventually("it asks", async || proxy.seen("acquire") > before).await;
        has_read_all(&next).await;
        assert_eq!(proxy.seen("acquire"), before + 1, "{tasks} tasks, {place} before them");
    }
    assert_eq!(witness.count(), 0);
    drop(clock);
    holder.release().await.unwrap();
    all_have_worked(crowds).await;
    drop((first, next));
    assert_no_trace(&server).await;
}

/// The head of the queue asks once in each `retry_delay`; every other process asks less often, the
/// more waiters are before it.
#[tokio::test]
async fn a_waiting_process_polls_once_per_retry_delay_however_many_tasks_wait() {
    for (tasks, place) in [(1, 0), (16, 0), (16, 3)] {
        let every = Duration::from_millis(200) * (place + 1);
        polls_every(every, "retry_delay=200ms", tasks, place as usize).await;
    }
}
