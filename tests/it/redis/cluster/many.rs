//! Many locks over all nodes, and the cost of a hand-off.

use lockattr_tests::{Cli, in_time};
use tokio::time::{Instant, sleep};

use super::*;

#[tokio::test]
#[expect(clippy::print_stderr, reason = "figures for the log")]
async fn a_thousand_leases_over_all_nodes_are_renewed() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster, "ttl=3s").await;
    let (mut guards, began) = (Vec::new(), Instant::now());
    for number in 0..1_000 {
        guards.push(acquire(&manager, &format!("k{number}")).await);
    }
    eprintln!("a thousand acquired in {:?}", began.elapsed());
    sleep(Duration::from_secs(7)).await;
    for guard in &guards {
        assert!(guard.ensure_held().is_ok(), "{} was lost", guard.key());
    }
    let began = Instant::now();
    drop(guards);
    assert_nothing_left(&cluster).await;
    eprintln!("a thousand released in {:?}", began.elapsed());
    drop(manager);
    assert_no_trace(&cluster).await;
}

async fn sent(cli: &Cli) -> u64 {
    cli.commandstats().await.get("evalsha").copied().unwrap_or_default()
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "figures for the log")]
async fn a_hand_off_between_processes_costs_two_commands_here_too() {
    let cluster = Cluster::start().await;
    let cli = cluster.node_of("lock:a").await.cli().await;
    let first = manager(&cluster, LONG).await;
    let holder = acquire(&first, "a").await;
    let (mut tasks, managers, rounds) = (Vec::new(), 16, 20);
    for place in 1..=managers {
        let next = manager(&cluster, LONG).await;
        tasks.push(tokio::spawn(async move {
            for _ in 0..rounds {
                acquire(&next, "a").await.release().await.unwrap();
            }
        }));
        eventually("queued", async || queued(&cluster, "a").await == place).await;
    }
    let before = sent(&cli).await - managers as u64;
    let began = Instant::now();
    holder.release().await.unwrap();
    for task in tasks {
        in_time(task).await.unwrap();
    }
    let (hand_offs, took) = (f64::from(managers as u32 * rounds), began.elapsed());
    let commands = f64::from(u32::try_from(sent(&cli).await - before - 1).unwrap()) / hand_offs;
    eprintln!("{commands:.3} commands per hand-off, {:.0}/s", hand_offs / took.as_secs_f64());
    assert!((2.0..=2.2).contains(&commands), "{commands}");
    assert!(took < SOON, "{took:?}: by timers, not by notifications");
    drop(first);
    assert_no_trace(&cluster).await;
}

/// One node loses all data: its locks are lost, and no others.
#[tokio::test]
async fn a_node_that_forgets_loses_its_own_locks_only() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster, "ttl=3s").await;
    let other = keys_beside(&cluster, "a", false, 1).await.remove(0);
    let (here, there) = (acquire(&manager, "a").await, acquire(&manager, &other).await);
    let before = here.fencing_token();
    cluster.node_of("lock:a").await.cli().await.flushall().await;
    in_time(here.lost()).await;
    sleep(Duration::from_secs(2)).await;
    assert!(there.ensure_held().is_ok());
    let next = acquire(&super::manager(&cluster, LONG).await, "a").await;
    assert!(next.fencing_token() > before);
    next.release().await.unwrap();
    there.release().await.unwrap();
    drop((here, manager));
    assert_no_trace(&cluster).await;
}
