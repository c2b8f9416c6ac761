//! A crowd of callers in many processes, on real servers.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Node, PostgresServer, RedisServer, eventually, node, with_query};
use tokio::time::sleep;

/// Runs flights of processes with 50 callers each. Each flight has one run of the body, and one value.
async fn flies(url: &str, processes: usize, flights: usize) {
    let mut nodes: Vec<Node> =
        (0..processes).map(|_| node!("share", url = url, callers = 50)).collect();
    for node in &mut nodes {
        assert_eq!(node.line().await, "ready");
    }
    let observer = LockManager::connect(url).await.unwrap();
    for flight in 0..flights {
        let mut values = Vec::new();
        let mut runs = 0;
        for node in &mut nodes {
            node.say(&format!("entry:{flight}")).await;
        }
        for node in &mut nodes {
            assert_eq!(node.line().await, "waits");
        }
        // A caller that finds the lock free when its request arrives runs the body: it has not waited.
        eventually("all other processes are queued", async || {
            let held = observer.held_locks().await.unwrap();
            let ours = held.iter().find(|held| held.key == format!("entry:{flight}"));
            ours.is_some_and(|held| held.waiting == processes as u64 - 1)
        })
        .await;
        // A caller takes a value for older by as long as its request is under way, so as not to take one from before
        // its call. It must have waited for longer than that.
        sleep(Duration::from_secs(5)).await;
        for node in &mut nodes {
            node.say("end").await;
        }
        for node in &mut nodes {
            let line = node.line().await;
            let (ran, got) = line.split_once(';').unwrap_or_else(|| panic!("{line}"));
            runs += ran.parse::<u32>().unwrap();
            values.extend(got.split(',').map(str::to_owned));
        }
        values.sort();
        values.dedup();
        assert_eq!((values.len(), runs), (1, 1), "flight {flight}: {values:?}");
    }
    for node in &mut nodes {
        assert!(node.finish().await.success());
    }
}

/// Red without: the note, or the local results.
#[tokio::test(flavor = "multi_thread")]
async fn over_redis_a_thousand_callers_in_twenty_processes_run_the_body_once_per_flight() {
    let server = RedisServer::start().await;
    // A value stays for one TTL, in which all processes have to be served: ten minutes here.
    flies(&server.url(), 20, 2).await;
    let cli = server.cli().await;
    let mut left = cli.keys("*").await;
    left.retain(|key| !key.contains("fence"));
    for key in &left {
        assert!(key.contains("lockattr:result:") && cli.pttl(key).await > 0, "{left:?}");
    }
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_postgres_hundreds_of_callers_in_many_processes_run_the_body_once_per_flight() {
    let (url, _) = PostgresServer::shared().await.new_database().await;
    flies(&url, 8, 2).await;
}

/// Red without: `check_sharing`.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_keeps_no_values_refuses_before_the_body() {
    let (url, _) = PostgresServer::shared().await.new_database().await;
    let manager = LockManager::connect(with_query(&url, "lock=session")).await.unwrap();
    let got =
        manager.with_shared_result("a", LockOptions::new(), async |_| -> Result<u32, Error> {
            panic!("the body ran")
        });
    assert!(matches!(got.await, Err(Error::InvalidOptions(_))));
}
