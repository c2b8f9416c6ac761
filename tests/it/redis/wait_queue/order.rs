//! First come, first served: across processes, and inside one.

use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use lockattr_tests::{RedisServer, node};

use super::killed::held;
use super::*;

/// Each manager is in the queue before the next one comes.
#[tokio::test]
async fn managers_acquire_in_the_order_of_their_arrival() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let (order, mut waiting) = (Arc::<Mutex<Vec<usize>>>::default(), JoinSet::new());
    for place in 1..=16 {
        let (next, order, witness) = (manager(&server, LONG).await, order.clone(), witness.clone());
        waiting.spawn(async move {
            let guard = acquire(&next).await;
            order.lock().unwrap().push(place);
            witness.sees(&guard).await;
            guard.release().await.unwrap();
        });
        wait_until_queued(&cli, place).await;
    }
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    all_have_worked(vec![waiting]).await;
    assert_eq!(*order.lock().unwrap(), (1..=16).collect::<Vec<_>>());
    assert_eq!(witness.count(), 16);
    drop(first);
    assert_no_trace(&server).await;
}

#[tokio::test]
async fn processes_acquire_in_the_order_of_their_arrival() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let mut nodes = Vec::new();
    for place in 1..=5 {
        let mut node = node!("lock", url = server.url_with(LONG));
        node.say("acquire a").await;
        nodes.push(node);
        wait_until_queued(&cli, place).await;
    }
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    for (place, node) in nodes.iter_mut().enumerate() {
        // No other node answers until this one releases.
        witness.saw(held(node).await);
        assert_eq!(queued(&cli, "a").await, 4 - place);
        node.say("release").await;
        assert_eq!(node.line().await, "released");
    }
    for mut node in nodes {
        assert!(node.finish().await.success());
    }
    drop(first);
    assert_no_trace(&server).await;
}

/// The lock is held in another process: the first task asks the store, and the others wait behind
/// it.
#[tokio::test]
async fn tasks_of_a_process_acquire_in_the_order_of_their_arrival() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let holder = acquire(&first).await;
    let (order, mut waiting) = (Arc::<Mutex<Vec<usize>>>::default(), JoinSet::new());
    for place in 1..=16 {
        let (next, order, witness) = (next.clone(), order.clone(), witness.clone());
        let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            let guard = acquire(&next).await;
            order.lock().unwrap().push(place);
            witness.sees(&guard).await;
            guard.release().await.unwrap();
        });
        // After one poll it is in the queue.
        tokio::select! {
            biased;
            () = work.as_mut() => panic!("it got in"),
            () = ready(()) => {}
        }
        waiting.spawn(work);
    }
    wait_until_queued(&cli, 1).await;
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    all_have_worked(vec![waiting]).await;
    assert_eq!(*order.lock().unwrap(), (1..=16).collect::<Vec<_>>());
    assert_eq!(witness.count(), 16);
    drop((first, next));
    assert_no_trace(&server).await;
}
