//! `FencedTransaction`: the token lasts exactly as long as its transaction.

use lockattr::fence::{FencedTransaction, is_fenced_off, is_unfenced};
use mysql_async::prelude::Queryable;
use mysql_async::{OptsBuilder, Pool, PoolConstraints, PoolOpts, TxOpts};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{Acquire, AssertSqlSafe};
use url::Url;

use super::mysql::{Shop, servers, servers_with_a_binary_log};
use super::token;
use lockattr_tests::bare;

const SELL: &str = "UPDATE stock SET quantity = quantity - 1 WHERE id = 42";

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Commit,
    Rollback,
    Drop,
    /// Dropped while its last statement runs.
    Cancel,
}

const ENDS: [End; 4] = [End::Commit, End::Rollback, End::Drop, End::Cancel];

/// Lets the server wait, so that the statement is sent and has no answer yet.
const SLOW: &str = "DO SLEEP(0.2)";

/// Polls once, which sends the statement, and drops it.
async fn cancelled(future: impl Future) {
    tokio::select! {
        biased;
        _ = future => panic!("it was to be slow"),
        () = tokio::task::yield_now() => {}
    }
}

/// A pool of one connection, which is not reset for its next user.
fn pool_of_one(url: &str) -> Pool {
    let options = PoolOpts::new()
        .with_constraints(PoolConstraints::new(1, 1).expect("valid"))
        .with_reset_connection(false);
    let opts = OptsBuilder::from_opts(mysql_async::Opts::from_url(&bare(url)).unwrap());
    Pool::new(opts.pool_opts(options))
}

/// Red without: the row, if the variable alone has the token.
#[tokio::test]
async fn a_pooled_connection_of_mysql_async_does_not_inherit_a_token() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        let pool = pool_of_one(&shop.url);
        let mut connections = Vec::new();
        for end in ENDS {
            let transaction = pool.start_transaction(TxOpts::new()).await.unwrap();
            connections.push(transaction.id());
            let mut transaction = FencedTransaction::new(transaction, token(5)).await.unwrap();
            transaction.query_drop(SELL).await.unwrap();
            match end {
                End::Commit => transaction.commit().await.unwrap(),
                End::Rollback => transaction.rollback().await.unwrap(),
                End::Drop => drop(transaction),
                End::Cancel => {
                    cancelled(transaction.query_drop(SLOW)).await;
                    drop(transaction);
                }
            }
            let mut next = pool.get_conn().await.unwrap();
            connections.push(next.id());
            let refused = next.query_drop(SELL).await.unwrap_err();
            assert!(is_unfenced(&refused) && !is_fenced_off(&refused), "{end:?}: {refused:?}");
            drop(next);
            let transaction = pool.start_transaction(TxOpts::new()).await.unwrap();
            let mut late = FencedTransaction::new(transaction, token(4)).await.unwrap();
            assert!(is_fenced_off(&late.query_drop(SELL).await.unwrap_err()), "{end:?}");
            late.rollback().await.unwrap();
        }
        connections.dedup();
        // A statement without an answer ends the connection of this client.
        assert!(connections.len() <= 2, "{connections:?}");
        pool.disconnect().await.unwrap();
        assert_eq!(shop.row(42).await, Some((99, 5)), "one of them was committed");
        assert_eq!(left(&mut shop).await, 0);
    }
}

#[tokio::test]
async fn a_pooled_connection_of_sqlx_does_not_inherit_a_token() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        let pool =
            MySqlPoolOptions::new().max_connections(1).connect(&bare(&shop.url)).await.unwrap();
        for end in ENDS {
            let transaction = pool.begin().await.unwrap();
            let mut transaction = FencedTransaction::new(transaction, token(5)).await.unwrap();
            sqlx::query(SELL).execute(&mut **transaction).await.unwrap();
            match end {
                End::Commit => transaction.commit().await.unwrap(),
                End::Rollback => transaction.rollback().await.unwrap(),
                End::Drop => drop(transaction),
                End::Cancel => {
                    cancelled(sqlx::query(SLOW).execute(&mut **transaction)).await;
                    drop(transaction);
                }
            }
            let refused = sqlx::query(SELL).execute(&pool).await.unwrap_err();
            assert!(is_unfenced(&refused) && !is_fenced_off(&refused), "{end:?}: {refused:?}");
            let transaction = pool.begin().await.unwrap();
            let mut late = FencedTransaction::new(transaction, token(4)).await.unwrap();
            let refused = sqlx::query(SELL).execute(&mut **late).await.unwrap_err();
            assert!(is_fenced_off(&refused), "{end:?}: {refused:?}");
        }
        pool.close().await;
        assert_eq!(shop.row(42).await, Some((99, 5)), "one of them was committed");
        assert_eq!(left(&mut shop).await, 0);
    }
}

/// A savepoint is a transaction of sqlx too.
#[tokio::test]
async fn a_part_of_a_transaction_has_a_token_of_its_own() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        let pool =
            MySqlPoolOptions::new().max_connections(1).connect(&bare(&shop.url)).await.unwrap();
        let mut whole = pool.begin().await.unwrap();
        for commits in [false, true] {
            let part = whole.begin().await.unwrap();
            let mut part = FencedTransaction::new(part, token(5)).await.unwrap();
            sqlx::query(SELL).execute(&mut **part).await.unwrap();
            match commits {
                true => part.commit().await.unwrap(),
                false => part.rollback().await.unwrap(),
            }
            let refused = sqlx::query(SELL).execute(&mut *whole).await.unwrap_err();
            assert!(is_unfenced(&refused), "{refused:?}");
        }
        whole.commit().await.unwrap();
        pool.close().await;
        assert_eq!(shop.row(42).await, Some((99, 5)));
        assert_eq!(left(&mut shop).await, 0);
    }
}

/// Such a statement commits the token too.
#[tokio::test]
async fn a_token_that_a_ddl_statement_committed_ends_with_the_commit() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        let pool = pool_of_one(&shop.url);
        let transaction = pool.start_transaction(TxOpts::new()).await.unwrap();
        let mut transaction = FencedTransaction::new(transaction, token(5)).await.unwrap();
        transaction.query_drop("CREATE TABLE other (id INT)").await.unwrap();
        assert_eq!(left(&mut shop).await, 1);
        let refused = shop.conn.query_drop(SELL).await.unwrap_err();
        assert!(is_unfenced(&refused), "it is no token of another session: {refused:?}");
        transaction.query_drop(SELL).await.unwrap();
        transaction.commit().await.unwrap();
        let mut next = pool.get_conn().await.unwrap();
        assert!(is_unfenced(&next.query_drop(SELL).await.unwrap_err()));
        drop(next);
        pool.disconnect().await.unwrap();
        assert_eq!(shop.row(42).await, Some((99, 5)));
        assert_eq!(left(&mut shop).await, 0);
    }
}

/// The triggers run with the rights of the user who applied the migration.
#[tokio::test]
async fn an_application_needs_rights_for_its_table_and_for_the_tokens() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        let database = shop.database();
        let user = format!("app_{database}");
        for statement in [
            format!("CREATE USER {user}@'%' IDENTIFIED BY 's3cret'"),
            format!("GRANT SELECT, UPDATE ON {database}.stock TO {user}@'%'"),
            format!(
                "GRANT SELECT, INSERT, DELETE ON {database}.lockattr_fence_tokens TO {user}@'%'"
            ),
        ] {
            shop.conn.query_drop(statement).await.unwrap();
        }
        let mut url = Url::parse(&bare(&shop.url)).unwrap();
        url.set_username(&user).unwrap();
        let pool = Pool::new(url.as_str());
        let transaction = pool.start_transaction(TxOpts::new()).await.unwrap();
        let mut transaction = FencedTransaction::new(transaction, token(5)).await.unwrap();
        transaction.query_drop(SELL).await.unwrap();
        transaction.commit().await.unwrap();
        pool.disconnect().await.unwrap();
        assert_eq!(shop.row(42).await, Some((99, 5)));
    }
}

/// Each transaction inserts and deletes its row, next to those of the others.
#[tokio::test]
async fn transactions_with_tokens_do_not_wait_for_each_other() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        let pool =
            MySqlPoolOptions::new().max_connections(8).connect(&bare(&shop.url)).await.unwrap();
        for _ in 0..5 {
            // All are open at once, and none waits for a lock, or this would not end.
            let mut open = Vec::new();
            for id in 0..8 {
                let transaction = pool.begin().await.unwrap();
                let mut transaction = FencedTransaction::new(transaction, token(5)).await.unwrap();
                let upsert = format!("REPLACE INTO stock (id, quantity) VALUES ({}, 1)", id * 100);
                sqlx::query(AssertSqlSafe(upsert)).execute(&mut **transaction).await.unwrap();
                open.push(transaction);
            }
            // In another order than they began.
            for at in [5, 0, 3, 1, 3, 2, 1, 0] {
                open.remove(at).commit().await.unwrap();
            }
        }
        pool.close().await;
        assert_eq!(left(&mut shop).await, 0);
    }
}

/// With a binary log, the query of a trigger may lock what it reads. All of these are open at once, and a
/// statement that has to wait for one of them fails.
///
/// Red without: the look at the variable before the query, or the end of one that names no row.
#[tokio::test]
async fn a_write_without_a_token_touches_its_own_row_alone() {
    const FENCE: &str = "BEGIN; INSERT INTO lockattr_fence_tokens (token) VALUES (5); \
                         SET @lockattr_fence = LAST_INSERT_ID(); UPDATE stock SET quantity = 9 WHERE id = ";
    for server in servers_with_a_binary_log().await {
        let mut shop = Shop::unfenced(server).await;
        shop.migrate(&["--table", "stock", "--allow-unfenced"]).await;
        let rows = "INSERT INTO stock (id, quantity) VALUES (1, 1), (2, 1), (3, 1), (4, 1)";
        shop.conn.query_drop(rows).await.unwrap();
        for format in ["STATEMENT", "MIXED", "ROW"] {
            let mut sessions = Vec::new();
            for _ in 0..4 {
                let mut session = server.cli(&shop.database()).await;
                let limit = format!(
                    "SET SESSION binlog_format = {format}, SESSION innodb_lock_wait_timeout = 1"
                );
                session.query_drop(limit).await.unwrap();
                sessions.push(session);
            }
            const UPDATE: &str = "UPDATE stock SET quantity = 2 WHERE id = ";
            let writes = [
                // As after a transaction that was dropped: the variable names no row, until a write looks.
                (0, format!("{FENCE}1; ROLLBACK")),
                (0, format!("{UPDATE}1")),
                (0, format!("BEGIN; {UPDATE}1")),
                (1, format!("BEGIN; {UPDATE}2")),
                (2, format!("{FENCE}42")),
                (0, "INSERT INTO stock (id, quantity) VALUES (50, 1)".into()),
                (1, "DELETE FROM stock WHERE id = 3".into()),
                (3, format!("{FENCE}4")),
            ];
            for (session, write) in writes {
                let written = sessions[session].query_drop(&write).await;
                assert!(written.is_ok(), "{format}: {write}: {written:?}");
            }
            for session in sessions {
                session.disconnect().await.unwrap();
            }
        }
        assert_eq!(left(&mut shop).await, 0);
    }
}

/// Red without: `FORGET`.
#[tokio::test]
async fn a_rollback_forgets_the_token() {
    for server in servers().await {
        let shop = Shop::new(server).await;
        let pool = pool_of_one(&shop.url);
        let transaction = pool.start_transaction(TxOpts::new()).await.unwrap();
        let transaction = FencedTransaction::new(transaction, token(5)).await.unwrap();
        transaction.rollback().await.unwrap();
        let named: Option<Option<u64>> =
            pool.get_conn().await.unwrap().query_first("SELECT @lockattr_fence").await.unwrap();
        assert_eq!(named, Some(None));
        pool.disconnect().await.unwrap();
    }
}

/// The rows of tokens that were committed, and would last.
async fn left(shop: &mut Shop) -> i64 {
    let left = shop.conn.query_first("SELECT COUNT(*) FROM lockattr_fence_tokens").await.unwrap();
    left.expect("a row")
}
