//! How many connections a process has, as the docs of `EtcdStore` count them.

use lockattr_tests::{eventually, own_connections};

use super::*;

async fn assert_connections(etcd: &Etcd, expected: usize) {
    let (what, addrs) = (format!("{expected} connections"), etcd.addrs());
    eventually(&what, async || own_connections(&addrs) == expected).await;
}

#[tokio::test]
async fn one_connection_carries_all_locks_and_watches_of_a_store() {
    let etcd = Etcd::start().await;
    let url = etcd.url();
    let (one, other) = (manager(&url).await, manager(&url).await);
    for key in 0..20 {
        let held = one.acquire(format!("{key}"), LockOptions::new()).await.unwrap();
        held.release().await.unwrap();
    }
    // Those that asked which member leads are closed.
    assert_connections(&etcd, 2).await;
    let leader = etcd.addrs().remove(etcd.leader().await);
    assert_eq!(own_connections(&[leader]), 2);
    let (mut held, mut waits) = (Vec::new(), Vec::new());
    for key in 0..8 {
        held.push(one.acquire(format!("{key}"), LockOptions::new()).await.unwrap());
        let other = other.clone();
        waits.push(tokio::spawn(async move {
            let held = other.acquire(format!("{key}"), LockOptions::new()).await.unwrap();
            held.release().await.unwrap();
        }));
    }
    let waiting = async || etcd.keys("lock:").await.len() == 2 * 8;
    eventually("all wait", waiting).await;
    assert_connections(&etcd, 2).await;
    for held in held {
        held.release().await.unwrap();
    }
    for waits in waits {
        waits.await.unwrap();
    }
    drop((one, other));
    assert_connections(&etcd, 0).await;
}
