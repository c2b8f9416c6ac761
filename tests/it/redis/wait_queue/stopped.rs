//! A process that is stopped (SIGSTOP) when it is granted the lock: the store cannot know, since
//! the connection still works.

use lockattr_tests::{RedisServer, eventually, in_time, node, skip};

use super::killed::{held, waiting_node};
use super::*;

#[tokio::test]
async fn a_stopped_head_costs_its_ttl_and_does_not_hold_when_it_resumes() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let mut head = waiting_node(&server, SHORT, 1).await;
    // It serves all of its own waiters before the head gets the lock again.
    let next = manager(&server, &format!("{LONG}&max_handoff_time=10h")).await;
    let waiting = tokio::spawn({
        let next = next.clone();
        async move { acquire(&next).await }
    });
    wait_until_queued(&cli, 2).await;
    head.stop_signal();
    witness.saw(holder.fencing_token());
    let granted = cli.value("lock:a").await;
    holder.release().await.unwrap();
    assert_ne!(cli.value("lock:a").await, granted, "handed off");
    wait_until_queued(&cli, 1).await;

    let successor = in_time(waiting).await.unwrap();
    witness.sees(&successor).await;
    let behind = crowd(&next, &witness, 3);
    // The grant is already there, and so is the order that follows.
    head.say("write").await;
    head.continue_signal();
    eventually("it joins the queue again", async || queued(&cli, "a").await == 1).await;
    successor.ensure_held().unwrap();
    successor.release().await.expect("another process held it meanwhile");
    all_have_worked(vec![behind]).await;
    witness.saw(held(&mut head).await);
    assert_eq!(head.line().await, "written");
    assert_eq!(witness.count(), 4);
    assert!(head.finish().await.success());
    drop((first, next));
    assert_no_trace(&server).await;
}

/// The body of an annotated function, whose work is ordered before the process continues.
#[tokio::test]
async fn the_body_of_a_stopped_head_never_overlaps_another() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let holder = first.acquire("job", LockOptions::new()).await.unwrap();
    let mut head = node!("job", url = server.url_with(SHORT));
    let stands = |count| {
        let cli = cli.clone();
        async move {
            eventually("queued", async || queued(&cli, "job").await == count).await;
        }
    };
    stands(1).await;
    let waiting = tokio::spawn({
        let next = next.clone();
        async move { next.acquire("job", LockOptions::new()).await.unwrap() }
    });
    stands(2).await;
    head.stop_signal();
    holder.release().await.unwrap();
    let successor = in_time(waiting).await.unwrap();
    head.say("write").await;
    head.continue_signal();
    // If it accepted the old grant, it would write and would not be queued.
    stands(1).await;
    successor.ensure_held().unwrap();
    successor.release().await.expect("another process held it meanwhile");
    assert_eq!(head.line().await, "wrote");
    assert!(head.finish().await.success());
    drop((first, next));
    assert_no_trace(&server).await;
}

/// Its lease began with the grant. Without renewals it would end too early for the work.
#[tokio::test]
async fn a_grant_that_its_waiter_sees_late_is_requested_again() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let holder = acquire(&first).await;
    let held = cli.value("lock:a").await;
    let mut waits = Box::pin(next.acquire("a", LockOptions::new().renew(false)));
    tokio::select! {
        biased;
        _ = waits.as_mut() => panic!("granted while another holds it"),
        () = wait_until_queued(&cli, 1) => {}
    }
    // From here on, the waiter is not polled.
    holder.release().await.unwrap();
    let granted = async || cli.value("lock:a").await.is_some_and(|value| Some(value) != held);
    eventually("it is granted", granted).await;
    skip(Duration::from_secs(20 * 60));
    let guard = in_time(waits).await.unwrap();
    assert!(guard.remaining() > Duration::from_secs(50 * 60), "{:?}", guard.remaining());
    guard.release().await.unwrap();
    drop((first, next));
    assert_no_trace(&server).await;
}
