//! URLs that are accepted, and URLs that are refused with a message.

use lockattr::store::{LockKey, PostgresStore, Store};

use super::*;
use crate::support::assert_refused;
use lockattr_tests::for_store;

/// Red without: the lists of names in `config.rs`.
#[test]
fn invalid_urls_are_refused() {
    for (query, word) in [
        ("colour=red", "colour"),
        ("replicas=1", "replicas"),
        ("ca=/nowhere", "`ca=/nowhere` cannot be read"),
        ("sslmode=maybe", "sslmode"),
        ("connections=0", "connections"),
        ("connect_timeout=10", "connect_timeout"),
        ("user=other", "user"),
        ("port=x", "port"),
    ] {
        assert_refused(&[(&format!("postgres://me:s3cret@db.example/shop?{query}"), word)]);
    }
}

#[test]
fn urls_that_libpq_accepts_are_accepted() {
    for url in [
        "postgresql://db.example",
        "postgres://me:p%40ss%27w%5Cord@db-1:5433,db-2/shop?target_session_attrs=any",
        "postgres://[::1]:5433/shop?options=-csearch_path%3Dlocks&application_name=orders",
        "postgres://%2Fvar%2Frun%2Fpostgresql/shop?user=me&password=p%26ss",
        "postgres:///shop?host=/var/run/postgresql&port=5433",
        "postgres://db.example/shop?connections=4&connect_timeout=2s&sslmode=disable",
        "postgres://db.example/shop?sslmode=verify-full&channel_binding=require",
        // As sqlx writes it (`pool.connect_options().to_url_lossy()`).
        "postgres://me:p%40ss@db.example:5432/shop?sslmode=prefer&statement-cache-capacity=100",
    ] {
        let store = PostgresStore::open(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        let shown = format!("{store:?}");
        assert!(!shown.contains("ss") || !shown.contains("p@ss"), "{shown}");
    }
}

#[tokio::test]
async fn users_passwords_and_options_reach_the_server() {
    let server = PostgresServer::shared().await;
    let (url, name) = server.new_database().await;
    server.run(&format!("create role \"o'dd {name}\" login superuser password 'p@''\\x'")).await;
    let url = url.replace("lockattr@", &format!("o'dd%20{name}:p%40'%5Cx@"));
    let locks =
        manager(&with_query(&url, "application_name=odd+one&options=-cwork_mem%3D4321kB")).await;
    acquire(&locks, "a").await.release().await.unwrap();
    let named = server.client_of(&name).await;
    let who = "select count(*) from pg_stat_activity where application_name = 'odd one'
        and datname = current_database() and usename like 'o''dd%'";
    assert!(named.query_one(who, &[]).await.unwrap().get::<_, i64>(0) >= 2);
}

#[tokio::test]
async fn names_too_long_for_an_index_are_refused_and_shorter_ones_work() {
    let database = Database::new().await;
    let prefix = "p".repeat(976);
    let manager = database.manager(&format!("prefix={prefix}")).await;
    let other = database.manager(&format!("prefix={prefix}")).await;
    let key = "k".repeat(1024);
    let held = acquire(&manager, &key).await;
    let next = tokio::spawn({
        let key = key.clone();
        async move { acquire(&other, &key).await }
    });
    database.waiting(1).await;
    held.release().await.unwrap();
    next.await.unwrap().release().await.unwrap();
    database.has_nothing_left().await;
    let store = PostgresStore::open(&for_store(&database.url)).unwrap();
    let longer = LockKey::new(&"p".repeat(977), &key).unwrap();
    assert!(store.refuses(&longer).is_some_and(|reason| reason.contains("2001")));
}
