//! TLS to real servers by a URL: what is verified, and what a refusal says.

use lockattr_tests::{Certificates, Engine, with_query};

use super::*;
use crate::over_tls::{assert_says, locks, refused};

/// The URL of a store at these addresses.
fn url(ensemble: &ZooKeeper, addrs: &[String], settings: &str) -> String {
    let chroot = ensemble.chroot_apart();
    with_query(&ensemble.url_below(addrs, &chroot), settings)
}

/// Red without: the relay in `Config::reach`.
#[tokio::test]
async fn an_ensemble_is_reached_through_tls_and_a_dead_server_is_passed_over() {
    let (ours, other) = (Certificates::new(), Certificates::new());
    let ensemble = ZooKeeper::with_tls(&[&ours, &ours, &ours]).await;
    let addrs = ensemble.secure_addrs();
    let secure = url(&ensemble, &addrs, &ours.trusted());
    locks(&secure).await;
    locks(&secure.replacen("://", "://app:s3cret@", 1).replace("/t/", "/own/")).await;

    let unknown = "the certificate of localhost is signed by an unknown authority";
    assert_says(&refused(&url(&ensemble, &addrs, &other.trusted())).await, unknown);
    // The system's authorities do not know ours.
    let login = url(&ensemble, &addrs, "tls=true").replacen("://", "://app:s3cret@", 1);
    assert_says(&refused(&login).await, unknown);
    // The port for plaintext.
    let plain = url(&ensemble, &[ensemble.addrs().remove(0)], &ours.trusted());
    assert_says(&refused(&plain).await, "ended the connection in place of TLS: check the port");

    // A held lock survives the death of the server that the client is connected to.
    let manager = LockManager::connect(&secure).await.unwrap();
    let held = manager.acquire("b", LockOptions::new()).await.unwrap();
    for nth in 0..3 {
        ensemble.kill_one(nth);
        ensemble.leader().await;
        held.extend(TTL).await.expect("another server goes on");
        ensemble.revive_one(nth).await;
    }
    held.release().await.expect("released");
}

/// Each server has a certificate of its own.
#[tokio::test]
async fn each_refusal_is_said_in_one_sentence() {
    let (named, expired) = (Certificates::of_another_name(), Certificates::expired());
    let demanding = Certificates::new().demanding_clients();
    let ensemble = ZooKeeper::with_tls(&[&named, &expired, &demanding]).await;
    let at = |nth: usize, settings: String| {
        url(&ensemble, &ensemble.secure_addrs()[nth..=nth], &settings)
    };
    let sentence = refused(&at(0, named.trusted())).await;
    assert_says(&sentence, "the certificate of localhost is for another host (");
    assert_says(&sentence, "db.example");
    let sentence = refused(&at(1, expired.trusted())).await;
    assert_says(&sentence, "the certificate of localhost has expired (");
    assert_says(&sentence, "renew it on the server");
    let sentence = refused(&at(2, demanding.trusted())).await;
    assert_says(&sentence, "localhost requires a client certificate");
    assert_says(&sentence, "`client_cert` and `client_key`");
    locks(&at(2, demanding.presented())).await;
    // Only one of the three is accepted, and the client finds it.
    locks(&url(&ensemble, &ensemble.secure_addrs(), &demanding.presented())).await;
}
