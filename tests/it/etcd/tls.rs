//! TLS to a real server: what is verified, and what a refusal says.

use lockattr::Error;
use lockattr::store::EtcdStore;
use lockattr_tests::{Certificates, SecureEtcd};

use crate::over_tls::{assert_says, locks, refused, rotates};

#[tokio::test]
async fn the_name_and_the_authority_of_a_server_are_verified() {
    let (ours, other) = (Certificates::new(), Certificates::new());
    let etcd = SecureEtcd::start(&ours).await;
    let url = |settings: &str| etcd.url(settings);
    locks(&url(&ours.trusted())).await;
    let unknown = "the certificate of localhost is signed by an unknown authority";
    assert_says(&refused(&url(&other.trusted())).await, unknown);
    // The system's authorities do not know ours.
    assert_says(&refused(&url("tls=true")).await, unknown);

    let named = Certificates::of_another_name();
    let etcd = SecureEtcd::start(&named).await;
    let sentence = refused(&etcd.url(&named.trusted())).await;
    assert_says(&sentence, "the certificate of localhost is for another host (");
    assert_says(&sentence, "db.example");
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let expired = Certificates::expired();
    let etcd = SecureEtcd::start(&expired).await;
    let sentence = refused(&etcd.url(&expired.trusted())).await;
    assert_says(&sentence, "the certificate of localhost has expired (");
    assert_says(&sentence, "renew it on the server");
}

#[tokio::test]
async fn a_server_that_demands_a_certificate_gets_it_or_the_error_says_so() {
    let demanding = Certificates::new().demanding_clients();
    let etcd = SecureEtcd::start(&demanding).await;
    let url = |settings: &str| etcd.url(settings);
    locks(&url(&demanding.presented())).await;
    let sentence = refused(&url(&demanding.trusted())).await;
    assert_says(&sentence, "localhost requires a client certificate");
    assert_says(&sentence, "`client_cert` and `client_key`");
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let ours = Certificates::new();
    let (ca, presented) = (ours.ca(), ours.presented());
    let (_, key) = presented.rsplit_once('=').expect("the last setting is the key");
    for (settings, says) in [
        ("ca=/nowhere".to_owned(), "`ca=/nowhere` cannot be read".to_owned()),
        (format!("ca={key}"), format!("`ca={key}` has no certificate in PEM")),
        (
            format!("client_cert={0}&client_key={0}", ca.display()),
            format!("`client_key={}` has no private key in PEM", ca.display()),
        ),
        (
            format!("client_cert={}&client_key={key}", ca.display()),
            format!("`client_key={key}` is not the key to the certificate"),
        ),
    ] {
        match EtcdStore::open(&format!("etcd://localhost?tls=true&{settings}")) {
            Err(Error::InvalidOptions(sentence)) => assert_says(&sentence, &says),
            other => panic!("{settings}: {other:?}"),
        }
    }
}

/// Red without: `Handshake::renewed`.
#[tokio::test]
async fn what_is_rotated_in_the_files_is_in_the_next_connection() {
    let (ours, other) = (Certificates::new().demanding_clients(), Certificates::new());
    let etcd = SecureEtcd::start(&ours).await;
    rotates(other.client_files(), ours.client_files(), |[ca, cert, key]| {
        let (ca, cert, key) = (ca.display(), cert.display(), key.display());
        etcd.url(&format!("tls=true&ca={ca}&client_cert={cert}&client_key={key}"))
    })
    .await;
}
