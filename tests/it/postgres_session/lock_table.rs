//! The server's lock table, which has room for few locks: a store leaves half of it to others, and
//! says what to do when others have filled it.

use lockattr::{Error, LockOptions};
use lockattr_tests::{Engine, PostgresServer, eventually};

use super::{acquire, manager};

/// A server whose table has room for 10 × 40 locks.
async fn small() -> (PostgresServer, String) {
    let settings = ["max_locks_per_transaction = 10", "max_connections = 40"];
    let server = PostgresServer::with(&settings).await;
    let url = server.url_with("lock=session&retry=0");
    (server, url)
}

async fn locks(server: &PostgresServer) -> i64 {
    let count = "select count(*) from pg_locks where locktype = 'advisory'";
    server.client().await.query_one(count, &[]).await.unwrap().get(0)
}

/// Red without: `LockTable` in `refuses_claim`, or its check in `acquire`.
#[tokio::test]
async fn more_locks_than_half_of_the_table_are_refused_before_they_fail_others() {
    let (server, url) = small().await;
    let manager = manager(&url).await;
    let keys = (0..201).map(|nth| format!("k{nth}"));
    let refused = manager.acquire_all(keys, LockOptions::new()).await.map(drop);
    let Err(Error::InvalidOptions(sentence)) = refused else { panic!("{refused:?}") };
    assert!(sentence.contains("max_locks_per_transaction"), "{sentence}");
    assert!(sentence.contains("at most 200"), "{sentence}");
    let keys = (0..199).map(|nth| format!("k{nth}"));
    let many = manager.acquire_all(keys, LockOptions::new()).await.unwrap();
    let last = acquire(&manager, "last").await;
    assert_eq!(locks(&server).await, 200);
    let refused = manager.acquire("more", LockOptions::new()).await.map(drop);
    let Err(Error::Store { source, .. }) = refused else { panic!("{refused:?}") };
    assert!(source.to_string().contains("max_locks_per_transaction"), "{source}");
    many.release().await.unwrap();
    acquire(&manager, "more").await.release().await.unwrap();
    last.release().await.unwrap();
    assert_eq!(locks(&server).await, 0);
}

/// Red without: the advice in `describe`, or the `undo` of a request that failed half-way.
#[tokio::test]
async fn a_table_that_others_have_filled_is_named_with_what_to_do() {
    let (server, url) = small().await;
    let sessions = manager(&url).await;
    let leases = manager(&url.replace("lock=session", "lock=lease")).await;
    acquire(&leases, "first").await.release().await.unwrap();
    let client = server.client().await;
    let mut taken = 0;
    for number in 0..100_000_i64 {
        match client.execute("select pg_advisory_lock($1)", &[&number]).await {
            Ok(_) => taken += 1,
            Err(_) => break,
        }
    }
    for (manager, several) in [(&sessions, true), (&leases, false)] {
        let keys = (0..if several { 150 } else { 1 }).map(|nth| format!("k{nth}"));
        let refused = manager.acquire_all(keys, LockOptions::new()).await.map(drop);
        let Err(Error::Store { source, .. }) = refused else { panic!("{refused:?}") };
        assert!(source.to_string().contains("raise `max_locks_per_transaction`"), "{source}");
    }
    client.execute("select pg_advisory_unlock_all()", &[]).await.unwrap();
    assert!(taken > 200, "{taken}");
    drop(leases);
    let none = async || locks(&server).await == 0;
    eventually("nothing is left of the requests that failed", none).await;
    let keys = (0..150).map(|nth| format!("k{nth}"));
    let many = sessions.acquire_all(keys, LockOptions::new()).await.unwrap();
    assert_eq!(locks(&server).await, 150);
    many.release().await.unwrap();
    assert_eq!(locks(&server).await, 0);
}
