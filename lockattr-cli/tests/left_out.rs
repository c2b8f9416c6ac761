//! Names that no key can have, in each store where another program can write them: `ls` counts them.

use lockattr::{LockGuard, LockManager};
use lockattr_tests::{Engine, Etcd, MariaDb, PostgresServer, RedisServer, ZooKeeper};

use crate::support::{at_once, said};

/// A lock of the service `orders`, for as long as the guard lives.
async fn held(url: &str) -> LockGuard {
    let manager = LockManager::builder().url(url).service("orders").connect().await.unwrap();
    manager.acquire("product:42", at_once()).await.unwrap()
}

/// Asserts that one lock is listed, and this many names are left out.
async fn assert_left_out(url: &str, count: usize) {
    let listed = said(url, &["ls", "--json"]).await;
    assert_eq!((listed.code, listed.out.lines().count()), (Some(0), 1), "{listed:?}");
    assert!(listed.out.contains("product:42"), "{listed:?}");
    let names = match count {
        0 => return assert_eq!(listed.err, "", "{listed:?}"),
        1 => "1 name under the prefix is".to_owned(),
        _ => format!("{count} names under the prefix are"),
    };
    let why = "left out: not UTF-8, or longer than 1024 bytes, so no key of a lock";
    assert_eq!(listed.err, format!("lockattr: {names} {why}\n"));
}

/// Red without: `left_out` in `held_locks.rs` of Redis, or `notice` in `ls.rs`.
#[tokio::test]
async fn redis() {
    let server = RedisServer::start().await;
    let url = server.url();
    let _held = held(&url).await;
    assert_left_out(&url, 0).await;
    let client = redis::Client::open(url.clone()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let names = [&b"lock:\xff\xfe"[..], format!("lock:{}", "k".repeat(1025)).as_bytes(), b"lock:"]
        .map(<[u8]>::to_vec);
    for (nth, name) in names.into_iter().enumerate() {
        redis::cmd("SET").arg(name).arg("0").query_async::<()>(&mut connection).await.unwrap();
        assert_left_out(&url, nth + 1).await;
    }
}

/// A lock that several share has several rows, and one name. A lease that has ended is no lock.
///
/// Red without: `left_out` in `HeldLockRows`, or `list_held_locks` of `PostgresStore`.
#[tokio::test]
async fn postgres() {
    let server = PostgresServer::start().await;
    let url = server.url();
    let _held = held(&url).await;
    assert_left_out(&url, 0).await;
    server
        .run(
            "insert into lockattr_locks values
                 ('lock:'::bytea || '\\xfffe', 't', '0', now() + interval '1 hour'),
                 (convert_to('lock:' || repeat('k', 1025), 'UTF8'), 't', '0', now() + interval '1 hour'),
                 ('lock:', 't', '0', now() + interval '1 hour'),
                 ('lock:'::bytea || '\\xee', 't', '0', now() - interval '1 second'),
                 ('other:'::bytea || '\\xee', 't', '0', now() + interval '1 hour');
             insert into lockattr_holders values
                 ('lock:'::bytea || '\\xdd', 'one', 's', '0', now() + interval '1 hour'),
                 ('lock:'::bytea || '\\xdd', 'two', 's', '0', now() + interval '1 hour');",
        )
        .await;
    assert_left_out(&url, 4).await;
}

/// Red without: `left_out` in `HeldLockRows`, or `list_held_locks` of `MysqlStore`.
#[tokio::test]
async fn mysql() {
    let server = MariaDb::shared().await;
    let database = server.database().await;
    let url = server.url_of(&database);
    let _held = held(&url).await;
    assert_left_out(&url, 0).await;
    for name in ["UNHEX('6C6F636B3AFFFE')", "CONCAT('lock:', REPEAT('k', 1025))", "'lock:'"] {
        let end = "TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)) + 3600000000";
        let insert = format!(
            "INSERT INTO lockattr_v2_locks SELECT UNHEX(SHA2({name}, 256)), '', {name}, 'x', 't', \
             '0', '', {end}, 0, 0"
        );
        server.execute(&database, &insert).await;
    }
    assert_left_out(&url, 3).await;
}

/// A name is percent-encoded there. One that is encoded in another way belongs to another program.
///
/// Red without: `left_out` in `queues` of ZooKeeper, or `list_held_locks` in `delegate.rs`.
#[tokio::test]
async fn zookeeper() {
    let ensemble = ZooKeeper::single().await;
    let chroot = ensemble.chroot_apart();
    let url = ensemble.url_below(&ensemble.addrs(), &chroot);
    let _held = held(&url).await;
    assert_left_out(&url, 0).await;
    for name in ["lock:%FF%FE", &format!("lock:{}", "k".repeat(1025)), "lock:", "lock:%61", "o%FF"]
    {
        ensemble.create(&format!("{chroot}/{name}")).await;
    }
    assert_left_out(&url, 3).await;
}

/// Several keys may belong to one name, and a key without a `/` belongs to another program.
///
/// Red without: `left_out` in `queues` of etcd, or `list_held_locks` in `delegate.rs`.
#[tokio::test]
async fn etcd() {
    let cluster = Etcd::single().await;
    let url = cluster.url();
    let _held = held(&url).await;
    assert_left_out(&url, 0).await;
    let long = format!("lock:{}", "k".repeat(1025));
    let (entry, next) = ("x-0123456789abcdef0123456789abcdef-7b", "x-other");
    for name in ["lock:%FF%FE", &long, "lock:", "lock:%61"] {
        cluster.ctl(&["put", &format!("{name}/{entry}"), "0"]).await;
        cluster.ctl(&["put", &format!("{name}/{next}"), "0"]).await;
    }
    cluster.ctl(&["put", "lock:plain", "0"]).await;
    assert_left_out(&url, 3).await;
}
