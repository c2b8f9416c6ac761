//! A table of PostgreSQL that checks tokens itself.

use lockattr::fence::{FENCED_OFF, UNFENCED};
use lockattr_tests::{PostgresServer, bare};
use tokio_postgres::{Client, Error};

use super::{Overtaken, client, printed};

/// A database with the table `stock`, which has one row.
pub(super) struct Shop {
    pub(super) url: String,
    pub(super) name: String,
    pub(super) client: Client,
}

impl Shop {
    pub(super) async fn unfenced() -> Self {
        let server = PostgresServer::shared().await;
        let (url, name) = server.new_database().await;
        let shop = Self { url, client: server.client_of(&name).await, name };
        shop.run("create table stock (id int primary key, quantity int not null)").await;
        shop.run("insert into stock values (42, 100)").await;
        shop
    }

    /// The same, and the table refuses late writes.
    pub(super) async fn new() -> Self {
        let shop = Self::unfenced().await;
        shop.migrate(&["--table", "stock"]).await;
        shop
    }

    /// Applies the migration as its help says.
    pub(super) async fn migrate(&self, words: &[&str]) {
        let (succeeded, output) = self.try_migrate(words).await;
        assert!(succeeded, "{words:?}\n{output}");
    }

    /// The same. Returns whether it succeeded, and the client's output.
    pub(super) async fn try_migrate(&self, words: &[&str]) -> (bool, String) {
        let migration = printed(&[&["--engine", "postgres"], words].concat()).await;
        let arguments = ["-X", "-q", "-v", "ON_ERROR_STOP=1", &bare(&self.url)];
        client("psql", &arguments, &migration)
    }

    pub(super) async fn run(&self, statements: &str) {
        let ran = self.client.batch_execute(statements).await;
        ran.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    /// Runs a statement in a transaction with this token, or none. Returns the SQLSTATE if it is
    /// refused.
    pub(super) async fn write(&self, token: Option<u64>, statement: &str) -> Result<(), String> {
        let set =
            token.map(|token| format!("select set_config('lockattr.fence', '{token}', true);"));
        let statements = format!("begin; {} {statement}; commit", set.unwrap_or_default());
        let outcome = self.client.batch_execute(&statements).await;
        if outcome.is_err() {
            self.run("rollback").await;
        }
        outcome.map_err(|error| state(&error))
    }

    /// The quantity and the token of a row, if it exists.
    pub(super) async fn row(&self, id: i32) -> Option<(i32, i64)> {
        let select = "select quantity, fence from stock where id = $1";
        let row = self.client.query_opt(select, &[&id]).await.unwrap();
        row.map(|row| (row.get(0), row.get(1)))
    }
}

pub(super) fn state(error: &Error) -> String {
    error.code().unwrap_or_else(|| panic!("{error:?}")).code().to_owned()
}

pub(super) const SELL: &str = "update stock set quantity = quantity - 1 where id = 42";

#[tokio::test]
async fn a_row_accepts_equal_and_greater_tokens_and_no_smaller_one() {
    let shop = Shop::new().await;
    assert_eq!(shop.row(42).await, Some((100, 0)), "a row from before the migration");
    assert_eq!(shop.write(None, SELL).await, Err(UNFENCED.into()));
    shop.write(Some(5), SELL).await.unwrap();
    shop.write(Some(5), SELL).await.unwrap();
    assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));
    // A statement cannot choose another token.
    let forged = "update stock set quantity = 0, fence = 9 where id = 42";
    assert_eq!(shop.write(Some(4), forged).await, Err(FENCED_OFF.into()));
    assert_eq!(shop.row(42).await, Some((98, 5)));
    // One too old among many refuses all of them.
    shop.write(Some(3), "insert into stock values (1, 1)").await.unwrap();
    let all = shop.write(Some(4), "update stock set quantity = 7").await;
    assert_eq!(all, Err(FENCED_OFF.into()));
    assert_eq!(shop.row(1).await, Some((1, 3)));
    shop.write(Some(i64::MAX.cast_unsigned()), forged).await.unwrap();
    assert_eq!(shop.row(42).await, Some((0, i64::MAX)));
}

#[tokio::test]
async fn inserts_upserts_and_deletes_are_writes_too() {
    let shop = Shop::new().await;
    let insert = "insert into stock values (1, 1)";
    assert_eq!(shop.write(None, insert).await, Err(UNFENCED.into()));
    shop.write(Some(5), insert).await.unwrap();
    assert_eq!(shop.row(1).await, Some((1, 5)));

    let upsert = "insert into stock values (1, 2) on conflict (id) do update set quantity = 2";
    assert_eq!(shop.write(None, upsert).await, Err(UNFENCED.into()));
    assert_eq!(shop.write(Some(4), upsert).await, Err(FENCED_OFF.into()));
    assert_eq!(shop.row(1).await, Some((1, 5)));
    shop.write(Some(6), upsert).await.unwrap();
    assert_eq!(shop.row(1).await, Some((2, 6)));

    let delete = "delete from stock where id = 1";
    assert_eq!(shop.write(None, delete).await, Err(UNFENCED.into()));
    assert_eq!(shop.write(Some(5), delete).await, Err(FENCED_OFF.into()));
    assert_eq!(shop.row(1).await, Some((2, 6)));
    shop.write(Some(6), delete).await.unwrap();
    assert_eq!(shop.row(1).await, None);
}

#[tokio::test]
async fn an_error_names_the_table_and_both_tokens() {
    let shop = Shop::new().await;
    shop.write(Some(91_234), SELL).await.unwrap();
    let set = "begin; select set_config('lockattr.fence', '91233', true)";
    shop.run(set).await;
    let refused = shop.client.batch_execute(SELL).await.unwrap_err();
    let refused = refused.as_db_error().expect("the server's error");
    assert_eq!(
        refused.message(),
        "fencing token 91233 is too old: token 91234 has written this row of public.stock"
    );
    assert_eq!((refused.schema(), refused.table()), (Some("public"), Some("stock")));
    shop.run("rollback").await;
    let refused = shop.client.batch_execute(SELL).await.unwrap_err();
    let refused = refused.as_db_error().expect("the server's error");
    assert_eq!(refused.message(), "a write to public.stock has no fencing token");
    assert!(refused.hint().is_some_and(|hint| hint.contains("set_config")));
}

/// Code that compares tokens in its statements continues to work.
#[tokio::test]
async fn with_allow_unfenced_a_write_without_a_token_leaves_the_column() {
    let shop = Shop::unfenced().await;
    shop.migrate(&["--table", "stock", "--allow-unfenced"]).await;
    shop.write(Some(5), SELL).await.unwrap();
    shop.write(None, SELL).await.unwrap();
    assert_eq!(shop.row(42).await, Some((98, 5)));
    assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));
    let compares = |token| {
        format!(
            "update stock set quantity = {token}, fence = {token} where id = 42 and fence < {token}"
        )
    };
    shop.write(None, &compares(7)).await.unwrap();
    shop.write(None, &compares(6)).await.unwrap();
    assert_eq!(shop.row(42).await, Some((7, 7)));
    let lower = shop.write(None, "update stock set fence = 6").await;
    assert_eq!(lower, Err(FENCED_OFF.into()));
    shop.write(None, "insert into stock values (1, 1)").await.unwrap();
    assert_eq!(shop.row(1).await, Some((1, 0)));
    assert_eq!(shop.write(Some(6), "delete from stock").await, Err(FENCED_OFF.into()));
    shop.write(None, "delete from stock").await.unwrap();
    assert_eq!(shop.row(42).await, None);
}

#[tokio::test]
async fn the_migration_can_run_twice_and_be_undone_twice() {
    let shop = Shop::new().await;
    shop.write(Some(5), SELL).await.unwrap();
    shop.migrate(&["--table", "stock"]).await;
    assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));
    assert_eq!(shop.row(42).await, Some((99, 5)), "the tokens are kept");
    // As a tool that runs each migration in a transaction does.
    let migration = printed(&["--engine", "postgres", "--table", "stock"]).await;
    shop.run(&format!("begin; {migration} commit")).await;
    assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));

    for _ in 0..2 {
        shop.migrate(&["--table", "stock", "--down"]).await;
        shop.write(None, SELL).await.unwrap();
    }
    let left = "select (select count(*) from pg_attribute where attrelid = 'stock'::regclass
                    and attname = 'fence' and not attisdropped)
                + (select count(*) from pg_trigger where tgrelid = 'stock'::regclass)
                + (select count(*) from pg_proc where proname like 'lockattr%')";
    let left = shop.client.query_one(left, &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn any_name_of_a_table_is_only_a_name() {
    let shop = Shop::unfenced().await;
    let names = [
        ("public", "Stock"),
        ("public", "select"),
        ("public", "a\"b'c\\d`e"),
        ("public", "x\"; drop table stock; --"),
        ("public", "$lockattr$ begin end $lockattr$"),
        ("Other; schema", "stock.of.münchen 💰"),
    ];
    shop.run("create schema \"Other; schema\"").await;
    for (schema, name) in names {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let table = format!("{}.{}", quoted(schema), quoted(name));
        let column = "the \"fence\" $lockattr1$ it's";
        shop.run(&format!("create table {table} (id int)")).await;
        let words =
            ["--table", &table, "--column", column, "--name", "it's \"the\" $lockattr2$ name"];
        shop.migrate(&words).await;
        shop.migrate(&words).await;
        let insert = format!("insert into {table} values (1)");
        let update = format!("update {table} set id = id + 1");
        assert_eq!(shop.write(None, &insert).await, Err(UNFENCED.into()), "{table}");
        shop.write(Some(5), &insert).await.unwrap();
        assert_eq!(shop.write(Some(4), &update).await, Err(FENCED_OFF.into()), "{table}");
        let row = format!("select {} from {table}", quoted(column));
        assert_eq!(shop.client.query_one(&row, &[]).await.unwrap().get::<_, i64>(0), 5);
        shop.migrate(&[&words[..], &["--down"]].concat()).await;
        shop.write(None, &update).await.unwrap();
    }
    // Without quotes, and in another case than the server would make it.
    shop.migrate(&["--table", "public.Stock"]).await;
    let refused = shop.write(None, "insert into \"Stock\" values (1)").await;
    assert_eq!(refused, Err(UNFENCED.into()));
    assert_eq!(shop.row_count().await, 1, "`stock` is as it was");
}

impl Shop {
    async fn row_count(&self) -> i64 {
        self.client.query_one("select count(*) from stock", &[]).await.unwrap().get(0)
    }
}

/// Red without: the comparison in the trigger.
#[tokio::test]
async fn the_late_write_of_a_holder_that_was_stopped_is_refused() {
    let shop = Shop::new().await;
    let write = format!(
        "psql -X -q -t -v ON_ERROR_STOP=1 -v VERBOSITY=verbose '{}' 2>&1 \
         -c \"select set_config('lockattr.fence', '$LOCKATTR_FENCING_TOKEN', true)\" \
         -c 'update stock set quantity = 97' --single-transaction",
        bare(&shop.url)
    );
    let mut holders = Overtaken::new(&shop.url, &write).await;
    shop.write(Some(holders.next.get()), "update stock set quantity = 95").await.unwrap();
    let (text, code) = holders.write_late().await;
    assert!(text.contains("LKF01") && code != "0", "{code}: {text}");
    assert_eq!(shop.row(42).await, Some((95, holders.next.into())));
}
