//! Stores from the program's own client settings and TLS.

use std::sync::Arc;

use lockattr::Error;
use lockattr::store::{PostgresSessionStore, PostgresStore, ServerOptions};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::*;
use lockattr_tests::HUNG;

fn options() -> ServerOptions {
    ServerOptions::new().connections(1).connect_timeout(HUNG).response_timeout(HUNG)
}

/// The settings for a server, by an application name that the test counts.
fn config(server: &PostgresServer) -> Config {
    let port = server.addr().rsplit(':').next().unwrap().parse().unwrap();
    let mut config = Config::new();
    config.host("localhost").port(port).user("lockattr").dbname("postgres");
    config.application_name("own config");
    config
}

/// rustls, which trusts the server's authority.
fn tls(server: &PostgresServer) -> MakeRustlsConnect {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(server.ca_path()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth())
}

/// How many sessions there are with TLS, and without.
async fn sessions(server: &PostgresServer) -> (i64, i64) {
    let count = "select count(*) filter (where ssl), count(*) filter (where not ssl)
        from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'own config'";
    let row = server.client().await.query_one(count, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// A lock is handed off from one manager to the other.
async fn hand_off(server: &PostgresServer, one: LockManager, other: LockManager) {
    let held = acquire(&one, "a").await;
    let waits = tokio::spawn(async move { acquire(&other, "a").await });
    let client = server.client().await;
    let queued = async || {
        let count = client.query_one("select count(*) from lockattr_queue", &[]).await.unwrap();
        count.get::<_, i64>(0) == 1
    };
    eventually("the waiter is queued", queued).await;
    held.release().await.unwrap();
    waits.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn both_stores_use_the_programs_tls() {
    let server = PostgresServer::with_tls().await;
    let config = config(&server).ssl_mode(SslMode::Require).clone();
    let leases = || PostgresStore::from_config(config.clone(), tls(&server), options()).unwrap();
    let build = |store| {
        let builder = LockManager::builder().store(Arc::new(store)).ttl(HUNG).wait(HUNG);
        builder.build().unwrap()
    };
    hand_off(&server, build(leases()), build(leases())).await;

    let locks = LockManager::builder().store(Arc::new(leases())).connect().await.unwrap();
    let held = acquire(&locks, "a").await;
    eventually("one encrypted session", async || sessions(&server).await == (1, 0)).await;
    held.release().await.unwrap();
    drop(locks);

    let store = PostgresSessionStore::from_config(config.clone(), tls(&server), options());
    let locks = LockManager::builder().store(Arc::new(store.unwrap())).connect().await.unwrap();
    let held = acquire(&locks, "a").await;
    eventually("one encrypted session", async || sessions(&server).await == (1, 0)).await;
    held.release().await.unwrap();
}

/// `sslmode=prefer` is the client's default.
#[tokio::test]
async fn a_program_without_tls_connects_in_plaintext() {
    let server = PostgresServer::with_tls().await;
    let store = PostgresStore::from_config(config(&server), NoTls, options()).unwrap();
    let locks = LockManager::builder().store(Arc::new(store)).connect().await.unwrap();
    let held = acquire(&locks, "a").await;
    eventually("one session in plaintext", async || sessions(&server).await == (0, 1)).await;
    held.release().await.unwrap();
}

#[tokio::test]
async fn errors_name_the_server_and_no_password() {
    let mut config = Config::new();
    config.host("127.0.0.1").port(1).user("me").password("s3cret").dbname("shop");
    let store = PostgresStore::from_config(config, NoTls, ServerOptions::new()).unwrap();
    assert!(!format!("{store:?}").contains("s3cret"), "{store:?}");
    let refused = LockManager::builder().store(Arc::new(store)).connect().await.unwrap_err();
    let Error::Store { source, .. } = &refused else { panic!("{refused:?}") };
    let text = format!("{source} {refused:?}");
    assert!(text.contains("postgres://127.0.0.1:1/shop"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[test]
fn options_out_of_range_are_refused() {
    let make = |options| PostgresStore::from_config(Config::new(), NoTls, options);
    assert!(matches!(make(ServerOptions::new().connections(0)), Err(Error::InvalidOptions(_))));
    let store = || PostgresSessionStore::open("postgres://db.example/shop").unwrap();
    assert!(matches!(store().max_sessions(0), Err(Error::InvalidOptions(_))));
    assert!(store().max_sessions(1).is_ok());
}
