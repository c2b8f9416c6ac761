//! The fencing token as a value of a column, with the clients that programs use.

use lockattr::FencingToken;
use sqlx::{Connection, MySqlConnection, PgConnection};

use super::*;

const NEGATIVE: &str = "no token is negative";

/// Red without: `ToSql` and `FromSql` of the token.
#[tokio::test]
async fn tokio_postgres_writes_and_reads_a_token() {
    let database = Database::new().await;
    let token = acquire(&database.manager("").await, "a").await.fencing_token();
    let client = database.server.client_of(&database.name).await;
    client.batch_execute("create temporary table row (fence bigint)").await.unwrap();
    let write = "insert into row values ($1), ($2)";
    client.execute(write, &[&token, &None::<FencingToken>]).await.unwrap();
    let rows = client.query("select fence from row", &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, FencingToken>(0), token);
    assert_eq!(rows[0].get::<_, i64>(0), i64::from(token));
    assert_eq!(rows[1].get::<_, Option<FencingToken>>(0), None);

    let row = client.query_one("select -1::bigint, 1::int", &[]).await.unwrap();
    let refused = row.try_get::<_, FencingToken>(0).unwrap_err();
    let why = std::error::Error::source(&refused).expect("a reason").to_string();
    assert!(why.contains("-1") && why.contains(NEGATIVE), "{why}");
    row.try_get::<_, FencingToken>(1).expect_err("an int is too small for a token");
}

#[tokio::test]
async fn sqlx_writes_and_reads_a_token_in_postgresql() {
    let database = Database::new().await;
    let token = acquire(&database.manager("").await, "a").await.fencing_token();
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let create = "create temporary table row (fence bigint)";
    sqlx::query(create).execute(&mut connection).await.unwrap();
    let write = sqlx::query("insert into row values ($1), ($2)").bind(token);
    write.bind(None::<FencingToken>).execute(&mut connection).await.unwrap();
    let read = sqlx::query_as("select fence, fence from row").fetch_all(&mut connection);
    let rows: Vec<(Option<FencingToken>, Option<i64>)> = read.await.unwrap();
    assert_eq!(rows, [(Some(token), Some(i64::from(token))), (None, None)]);

    let read = sqlx::query_scalar::<_, FencingToken>("select -1::bigint");
    let refused = read.fetch_one(&mut connection).await.unwrap_err().to_string();
    assert!(refused.contains("-1") && refused.contains(NEGATIVE), "{refused}");
}

#[tokio::test]
async fn sqlx_writes_and_reads_a_token_in_mysql() {
    let server = lockattr_tests::MariaDb::shared().await;
    let url = server.url_of(&server.database().await);
    let manager = LockManager::connect(&url).await.unwrap();
    let token = acquire(&manager, "a").await.fencing_token();
    let mut connection = MySqlConnection::connect(&url).await.unwrap();
    let create = "create temporary table row_ (fence bigint)";
    sqlx::query(create).execute(&mut connection).await.unwrap();
    let write = sqlx::query("insert into row_ values (?), (?)").bind(token);
    write.bind(None::<FencingToken>).execute(&mut connection).await.unwrap();
    let read = sqlx::query_as("select fence, fence from row_").fetch_all(&mut connection);
    let rows: Vec<(Option<FencingToken>, Option<i64>)> = read.await.unwrap();
    assert_eq!(rows, [(Some(token), Some(i64::from(token))), (None, None)]);

    let read = sqlx::query_scalar::<_, FencingToken>("select cast(-1 as signed)");
    let refused = read.fetch_one(&mut connection).await.unwrap_err().to_string();
    assert!(refused.contains("-1") && refused.contains(NEGATIVE), "{refused}");
}
