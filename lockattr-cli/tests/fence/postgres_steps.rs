//! A migration of PostgreSQL that is refused leaves the table as it was, and one that succeeds guards
//! all of it.

use lockattr::fence::{FENCED_OFF, UNFENCED};
use lockattr_tests::PostgresServer;

use super::postgres::{SELL, Shop, state};
use super::printed;

#[track_caller]
fn assert_late(outcome: &Result<(), String>, what: &str) {
    assert_eq!(outcome.as_ref().unwrap_err(), FENCED_OFF, "{what}");
}

/// A client that continues after an error, as `psql` does, must find nothing to continue with.
#[tokio::test]
async fn the_migration_is_one_statement() {
    let shop = Shop::new().await;
    shop.write(Some(5), SELL).await.unwrap();
    for words in [&["--table", "stock"][..], &["--table", "stock", "--down"]] {
        let migration = printed(&[&["--engine", "postgres"], words].concat()).await;
        // Only one statement can be prepared.
        let prepared = shop.client.prepare(&migration).await;
        prepared.unwrap_or_else(|error| panic!("{migration}: {error:?}"));
    }
    assert_late(&shop.write(Some(4), SELL).await, "nothing was executed");
}

/// Red without: the search for the triggers' functions.
#[tokio::test]
async fn the_triggers_of_a_renamed_table_are_found_by_what_they_do() {
    let shop = Shop::unfenced().await;
    shop.migrate(&["--table", "stock", "--name", "odd \"name\""]).await;
    shop.run("alter table stock rename to goods").await;
    shop.run("alter trigger lockattr_fence on goods rename to fenced").await;
    // Applied again under the new name, it leaves nothing of the old one.
    shop.migrate(&["--table", "goods"]).await;
    shop.migrate(&["--table", "goods", "--name", "third"]).await;
    shop.migrate(&["--table", "goods", "--down"]).await;
    shop.write(None, "insert into goods values (1, 1)").await.unwrap();
    let left = "select (select count(*) from pg_trigger where tgrelid = 'goods'::regclass)
                + (select count(*) from pg_proc where prorettype = 'trigger'::regtype
                    and pronamespace = 'public'::regnamespace)";
    assert_eq!(shop.client.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn two_tables_with_one_name_do_not_break_each_other() {
    let shop = Shop::unfenced().await;
    shop.run("create table other (id int)").await;
    shop.migrate(&["--table", "stock", "--name", "guard"]).await;
    shop.write(Some(5), SELL).await.unwrap();
    for option in [&["--column", "second"][..], &["--allow-unfenced"]] {
        let words = [&["--table", "other", "--name", "guard"], option].concat();
        let (succeeded, output) = shop.try_migrate(&words).await;
        assert!(!succeeded && output.contains("another name with --name"), "{output}");
        shop.write(None, "insert into other values (1)").await.unwrap();
        assert_eq!(shop.write(None, SELL).await, Err(UNFENCED.into()));
    }
    // The same function serves both.
    shop.migrate(&["--table", "other", "--name", "guard"]).await;
    shop.migrate(&["--table", "other", "--name", "guard", "--down"]).await;
    assert_late(&shop.write(Some(4), SELL).await, "the function is there");
    shop.write(Some(5), SELL).await.unwrap();
}

/// A text would fail each write, and an `int` is too small for a token.
#[tokio::test]
async fn a_column_that_cannot_keep_a_token_is_refused_with_a_sentence() {
    let shop = Shop::unfenced().await;
    for (column, named) in [
        ("fence int", "integer"),
        ("fence text", "text"),
        ("fence bigint generated always as (id) stored", "bigint"),
    ] {
        shop.run(&format!("drop table if exists other; create table other (id int, {column})"))
            .await;
        let (succeeded, output) = shop.try_migrate(&["--table", "other"]).await;
        let sentence = format!("the column fence of other has the type {named}");
        assert!(!succeeded && output.contains(&sentence), "{output}");
        shop.write(None, "insert into other (id) values (1)").await.unwrap();
        shop.migrate(&["--table", "other", "--down"]).await;
    }
    shop.migrate(&["--table", "stock"]).await;
    let (succeeded, output) = shop.try_migrate(&["--table", "stock", "--column", "second"]).await;
    assert!(!succeeded && output.contains("uses another column"), "{output}");
}

/// A statement for the parent writes the rows of its children, with the children's triggers only.
#[tokio::test]
async fn children_and_partitions_are_guarded_like_their_table() {
    let shop = Shop::unfenced().await;
    shop.run(
        "create table child () inherits (stock); create table grandchild () inherits (child);
         insert into grandchild values (7, 1);
         create table parts (id int, quantity int) partition by range (id);
         create table part partition of parts for values from (0) to (9);
         insert into parts values (7, 1)",
    )
    .await;
    for (table, parts) in [("stock", &["child", "grandchild"][..]), ("parts", &["part", "later"])] {
        shop.migrate(&["--table", table]).await;
        if table == "parts" {
            shop.run("create table later partition of parts for values from (9) to (19)").await;
        }
        shop.write(Some(5), &format!("update {table} set quantity = 2")).await.unwrap();
        for table in parts.iter().chain([&table]) {
            let outcome = shop.write(Some(4), &format!("update {table} set quantity = 3")).await;
            // It has no row yet.
            if *table != "later" {
                assert_late(&outcome, table);
            }
            let insert = format!("insert into {table} (id, quantity) values (9, 1)");
            assert_eq!(shop.write(None, &insert).await, Err(UNFENCED.into()), "{table}");
        }
        shop.migrate(&["--table", table]).await;
        shop.migrate(&["--table", table, "--down"]).await;
        shop.write(None, &format!("update {table} set quantity = 4")).await.unwrap();
    }
}

/// It would make all later statements wait behind it.
#[tokio::test]
async fn a_migration_does_not_wait_long_for_a_transaction_that_has_the_table() {
    let shop = Shop::new().await;
    shop.write(Some(5), SELL).await.unwrap();
    shop.run("begin; select * from stock").await;
    let other = PostgresServer::shared().await.client_of(&shop.name).await;
    other.batch_execute("set statement_timeout = '60s'").await.unwrap();
    for words in [&["--table", "stock"][..], &["--table", "stock", "--down"]] {
        let migration = printed(&[&["--engine", "postgres"], words].concat()).await;
        let refused = other.batch_execute(&migration).await.unwrap_err();
        assert_eq!(state(&refused), "55P03", "lock_not_available");
    }
    shop.run("rollback").await;
    assert_late(&shop.write(Some(4), SELL).await, "the trigger is there");
    // The limit ends with the migration, also inside of a transaction.
    let migration = printed(&["--engine", "postgres", "--table", "stock"]).await;
    other.batch_execute(&format!("begin; {migration}")).await.unwrap();
    let limit = other.query_one("show lock_timeout", &[]).await.unwrap();
    assert_eq!(limit.get::<_, String>(0), "0");
}

/// Red without: `SET search_path` in the migration.
#[tokio::test]
async fn a_search_path_with_other_operators_lets_no_late_write_in() {
    let shop = Shop::new().await;
    shop.write(Some(5), SELL).await.unwrap();
    shop.run(
        "create schema odd;
         create function odd.never(bigint, bigint) returns boolean language sql as 'select false';
         create operator odd.< (leftarg = bigint, rightarg = bigint, function = odd.never);
         set search_path = odd, pg_catalog, public",
    )
    .await;
    assert_late(&shop.write(Some(4), SELL).await, "the operator is another one");
}
