//! `FencingToken::fence_in`: the token lasts exactly as long as its transaction.

use lockattr::LockManager;
use lockattr::fence::{is_fenced_off, is_unfenced};
use lockattr_tests::{PgBouncer, PostgresServer, bare};
use sqlx::postgres::PgPoolOptions;
use tokio_postgres::{Client, NoTls};

use super::postgres::Shop;
use super::token;

const SELL: &str = "update stock set quantity = quantity - 1 where id = 42";

/// How a transaction ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Commit,
    Rollback,
    Drop,
}

const ENDS: [End; 3] = [End::Commit, End::Rollback, End::Drop];

#[tokio::test]
async fn a_transaction_of_tokio_postgres_writes_under_its_token() {
    let shop = Shop::new().await;
    let mut client = PostgresServer::shared().await.client_of(&shop.name).await;
    for end in ENDS {
        let mut transaction = client.transaction().await.unwrap();
        token(5).fence_in(&mut transaction).await.unwrap();
        transaction.execute(SELL, &[]).await.unwrap();
        // A part that fails does not take the token along.
        let mut part = transaction.transaction().await.unwrap();
        token(4).fence_in(&mut part).await.unwrap();
        assert!(is_fenced_off(&part.execute(SELL, &[]).await.unwrap_err()));
        part.rollback().await.unwrap();
        transaction.execute(SELL, &[]).await.unwrap();
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
            End::Drop => drop(transaction),
        }
        let refused = client.execute(SELL, &[]).await.unwrap_err();
        assert!(is_unfenced(&refused) && !is_fenced_off(&refused), "{end:?}: {refused:?}");
    }
    assert_eq!(shop.row(42).await, Some((98, 5)), "one of three was committed");
}

#[tokio::test]
async fn a_pooled_connection_of_sqlx_does_not_inherit_a_token() {
    let shop = Shop::new().await;
    let pool = PgPoolOptions::new().max_connections(1).connect(&bare(&shop.url)).await.unwrap();
    for end in ENDS {
        let mut transaction = pool.begin().await.unwrap();
        token(5).fence_in(&mut transaction).await.unwrap();
        sqlx::query(SELL).execute(&mut *transaction).await.unwrap();
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
            End::Drop => drop(transaction),
        }
        let refused = sqlx::query(SELL).execute(&pool).await.unwrap_err();
        assert!(is_unfenced(&refused), "{end:?}: {refused:?}");
        let mut transaction = pool.begin().await.unwrap();
        token(4).fence_in(&mut transaction).await.unwrap();
        let refused = sqlx::query(SELL).execute(&mut *transaction).await.unwrap_err();
        assert!(is_fenced_off(&refused), "{end:?}: {refused:?}");
    }
    assert_eq!(shop.row(42).await, Some((99, 5)));
}

async fn connected(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(&bare(url), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Both clients use the same connection to the server.
///
/// Red without: `true`, for this transaction only, in the statement of `fence_in`.
#[tokio::test]
async fn another_client_of_a_pooler_does_not_inherit_a_token() {
    let shop = Shop::new().await;
    let pooler = PgBouncer::before(PostgresServer::shared().await, "transaction", 1, "").await;
    let url = pooler.url(&shop.name);
    let (mut first, second) = (connected(&url).await, connected(&url).await);
    let mut transaction = first.transaction().await.unwrap();
    token(5).fence_in(&mut transaction).await.unwrap();
    transaction.batch_execute(SELL).await.unwrap();
    let pid = "select pg_backend_pid()";
    let used = transaction.simple_query(pid).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(format!("{used:?}"), format!("{:?}", second.simple_query(pid).await.unwrap()));
    let refused = second.batch_execute(SELL).await.unwrap_err();
    assert!(is_unfenced(&refused), "{refused:?}");
}

/// As an application's own error has it.
#[derive(Debug)]
struct Wrapped(tokio_postgres::Error);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the order failed")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn a_refusal_is_found_inside_other_errors() {
    let shop = Shop::new().await;
    let refused = shop.client.execute(SELL, &[]).await.unwrap_err();
    let refused: Box<dyn std::error::Error + Send + Sync> = Box::new(Wrapped(refused));
    assert!(is_unfenced(&*refused) && !is_fenced_off(&*refused));
    let other = Wrapped(shop.client.execute("select 1 / 0", &[]).await.unwrap_err());
    assert!(!is_unfenced(&other) && !is_fenced_off(&other));
}

/// `acquire_in` and `fence_in` in one transaction.
#[tokio::test]
async fn the_token_of_a_lock_in_the_transaction_fences_it() {
    let shop = Shop::new().await;
    let locks = LockManager::connect(&shop.url).await.unwrap();
    let mut client = PostgresServer::shared().await.client_of(&shop.name).await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut transaction = client.transaction().await.unwrap();
        let token = locks.acquire_in(&mut transaction, "product:42").await.unwrap();
        token.fence_in(&mut transaction).await.unwrap();
        transaction.execute(SELL, &[]).await.unwrap();
        transaction.commit().await.unwrap();
        tokens.push(i64::from(token));
    }
    assert!(tokens[0] < tokens[1]);
    assert_eq!(shop.row(42).await, Some((98, tokens[1])));
}
