//! How many connections a process has, as the docs of `ZookeeperStore` count them.

use lockattr_tests::{Certificates, Engine, own_connections, with_query};

use super::*;

async fn assert_connections(addrs: &[String], expected: usize) {
    let what = format!("{expected} connections");
    eventually(&what, async || own_connections(addrs) == expected).await;
}

#[tokio::test]
async fn one_connection_carries_all_locks_and_waiters_of_a_store() {
    let ours = Certificates::new();
    let ensemble = ZooKeeper::with_tls(&[&ours]).await;
    let plain = (ensemble.addrs(), String::new());
    for (addrs, settings) in [plain, (ensemble.secure_addrs(), ours.trusted())] {
        let url = ensemble.url_below(&addrs, &ensemble.chroot_apart());
        let url = with_query(&url, &settings);
        let connect = || LockManager::connect(&url);
        let (one, other) = (connect().await.unwrap(), connect().await.unwrap());
        for key in 0..20 {
            let held = one.acquire(format!("{key}"), LockOptions::new()).await.unwrap();
            held.release().await.unwrap();
        }
        assert_connections(&addrs, 2).await;
        let (mut held, mut waits) = (Vec::new(), Vec::new());
        for key in 0..8 {
            held.push(one.acquire(format!("{key}"), LockOptions::new()).await.unwrap());
            let other = other.clone();
            waits.push(tokio::spawn(async move {
                let options = LockOptions::new();
                other.acquire(format!("{key}"), options).await.unwrap().release().await.unwrap();
            }));
        }
        for key in 0..8 {
            let waiting = async || line(&ensemble, &url, &format!("{key}")).await.len() == 2;
            eventually("it waits", waiting).await;
        }
        assert_connections(&addrs, 2).await;
        for held in held {
            held.release().await.unwrap();
        }
        for waits in waits {
            waits.await.unwrap();
        }
        drop((one, other));
        assert_connections(&addrs, 0).await;
    }
}
