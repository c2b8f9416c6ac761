//! Requests that share a statement.

use std::sync::Arc;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, MysqlStore, ReleaseOutcome, ReleaseRequest,
    Store as _,
};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::*;
use lockattr_tests::for_store;

/// A store with one connection, on a server of its own.
struct World {
    server: MariaDb,
    database: String,
    store: MysqlStore,
}

fn claim(key: &str) -> Arc<Claim> {
    Arc::new(Claim::new(LockKey::new("lock:", key).unwrap(), "service=test"))
}

impl World {
    async fn new(server: MariaDb) -> Self {
        let database = server.database().await;
        let query = "connections=1&heartbeat=1h";
        let store =
            MysqlStore::open(&for_store(&with_query(&server.url_of(&database), query))).unwrap();
        Self { server, database, store }
    }

    async fn acquire(&self, claim: &Arc<Claim>, ttl: Duration) -> bool {
        let request = AcquireRequest::new(claim.clone(), ttl);
        matches!(self.store.acquire(&request).await, Ok(AcquireOutcome::Acquired { .. }))
    }

    /// Begins a transaction that keeps the row of this lock.
    async fn keep(&self, key: &str) -> Conn {
        let mut other = self.server.cli(&self.database).await;
        let row = "SELECT name FROM lockattr_v2_locks WHERE id = UNHEX(SHA2(?, 256)) AND seat = '' \
                   FOR UPDATE";
        other.query_drop("START TRANSACTION").await.unwrap();
        let name: Option<Vec<u8>> = other.exec_first(row, (format!("lock:{key}"),)).await.unwrap();
        assert!(name.is_some(), "{key} is not held");
        other
    }

    /// Sends these requests while the server is busy with another one, so that they share a
    /// statement.
    async fn together<T>(&self, requests: impl Future<Output = T>) -> T {
        let busy = claim("busy");
        assert!(self.acquire(&busy, HOUR).await);
        // Behind the sweep of a new connection.
        self.store.ping().await.unwrap();
        let mut row = self.keep("busy").await;
        let releases = [ReleaseRequest::new(busy)];
        let goes_on = async {
            let waits = async || self.waits().await == 1;
            eventually("the release waits for the row", waits).await;
            row.query_drop("ROLLBACK").await.unwrap();
        };
        tokio::join!(self.store.release(&releases), requests, goes_on).1
    }

    /// How many statements wait for a row.
    async fn waits(&self) -> u64 {
        let waits = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'";
        let waits: Vec<(String, u64)> = self.server.query(&self.database, waits).await;
        waits[0].1
    }

    async fn held(&self) -> Vec<String> {
        let held = "SELECT name FROM lockattr_v2_locks ORDER BY name";
        self.server.query(&self.database, held).await
    }
}

/// Red without: the ends or the tokens in `acquire_several.sql`, or the tokens in `release_several.sql`.
#[tokio::test]
async fn of_requests_that_share_a_statement_each_gets_what_it_asked_for() {
    // What MariaDB does by plain statements, MySQL does by procedures.
    let servers = [Some(MariaDb::with(&[]).await), MariaDb::newest_mysql(&[]).await];
    for server in servers.into_iter().flatten() {
        let world = World::new(server).await;
        let [again, free, one, other] = ["a", "b", "c", "c"].map(claim);
        assert!(world.acquire(&again, HOUR).await);
        let acquired = world.together(async {
            tokio::join!(
                world.acquire(&again, HOUR * 9),
                world.acquire(&free, HOUR),
                world.acquire(&one, HOUR),
                world.acquire(&other, HOUR),
            )
        });
        assert_eq!(acquired.await, (true, true, true, false));
        assert_eq!(world.held().await, ["lock:a", "lock:b", "lock:c"]);
        let left = "SELECT (ends - TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6))) DIV 1000000 \
                    FROM lockattr_v2_locks WHERE name = 'lock:a'";
        let left = world.server.query::<u64>(&world.database, left).await[0];
        assert!(left > HOUR.as_secs() * 2, "the lease was not extended: {left} s");
        let releases = [claim("a"), free, one, claim("d")].map(ReleaseRequest::new);
        let released = world.together(world.store.release(&releases)).await;
        let released: Vec<_> = released.into_iter().map(Result::unwrap).collect();
        let (gone, kept) = (ReleaseOutcome::Released, ReleaseOutcome::NotHeld);
        assert_eq!(released, [kept, gone, gone, kept]);
        assert_eq!(world.held().await, ["lock:a"]);
    }
}

/// The batch passes over `b`, because a claim waits for it, and waits for the row of `c`. Meanwhile the
/// waiter gives up.
///
/// Red without: the tokens in the `DELETE` of `release_several.sql`.
#[tokio::test]
async fn a_lock_whose_last_waiter_leaves_under_a_batch_of_releases_is_reported_as_released() {
    let servers = [Some(MariaDb::with(&[]).await), MariaDb::newest_mysql(&[]).await];
    for server in servers.into_iter().flatten() {
        let world = World::new(server).await;
        // So many share one statement.
        let claims = ["a", "b", "c", "d"].map(claim);
        for claim in &claims {
            assert!(world.acquire(claim, HOUR).await);
        }
        let waiters = async |count: u64| {
            // By the key, to wait for no other row.
            let set = format!(
                "UPDATE lockattr_v2_locks SET waiting = {count} \
                 WHERE id = UNHEX(SHA2('lock:b', 256)) AND seat = ''"
            );
            world.server.execute(&world.database, &set).await;
        };
        waiters(1).await;
        let mut row = world.keep("c").await;
        let releases = claims.map(ReleaseRequest::new);
        let leaves = async {
            let waits = async || {
                !world.held().await.contains(&"lock:busy".into()) && world.waits().await == 1
            };
            eventually("the batch waits for the row of `c`", waits).await;
            waiters(0).await;
            row.query_drop("ROLLBACK").await.unwrap();
        };
        let both = async { tokio::join!(world.store.release(&releases), leaves).0 };
        let outcomes = world.together(both).await;
        let is_released = |outcome: &_| matches!(outcome, Ok(ReleaseOutcome::Released));
        assert!(outcomes.iter().all(is_released), "{outcomes:?}");
        assert_eq!(world.held().await, [""; 0]);
    }
}

/// The server commits the release of `a`, and refuses that of `b` in the same batch. So the repeated
/// release of `a` finds nothing.
///
/// Red without: `after` in the replies to a batch that failed.
#[tokio::test]
async fn a_release_whose_batch_fails_after_its_commit_is_not_reported_as_not_held() {
    let world = World::new(MariaDb::with(&[]).await).await;
    let claims = ["a", "b"].map(claim);
    for claim in &claims {
        assert!(world.acquire(claim, HOUR).await);
    }
    let mut releases = claims.map(ReleaseRequest::new);
    // Only a release at a later time has a transaction of its own.
    releases[1].after = Duration::from_millis(1);
    // Such a statement cannot be prepared.
    let mut cli = world.server.cli(&world.database).await;
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON lockattr_v2_locks FOR EACH ROW \
                  IF NEW.name = 'lock:b' THEN SIGNAL SQLSTATE '45000'; END IF";
    cli.query_drop(refuse).await.unwrap();
    let outcomes = world.together(world.store.release(&releases)).await;
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    assert_eq!(world.held().await, ["lock:b"]);
    cli.query_drop("DROP TRIGGER refuse").await.unwrap();
    releases[1].after = Duration::ZERO;
    let released = world.store.release(&releases[1..]).await.remove(0);
    assert!(matches!(released, Ok(ReleaseOutcome::Released)), "{released:?}");
    assert_eq!(world.server.left_in(&world.database).await, [""; 0]);
}
