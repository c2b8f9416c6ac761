//! A table of MariaDB, and of MySQL where that is installed, that checks tokens itself.

use lockattr::fence::{FENCED_OFF, UNFENCED};
use lockattr_tests::MariaDb;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tokio::sync::OnceCell;
use url::Url;

use super::{Overtaken, client, printed};

/// The server of all tests, and the newest MySQL.
pub(super) async fn servers() -> Vec<&'static MariaDb> {
    static NEWEST: OnceCell<Option<MariaDb>> = OnceCell::const_new();
    let newest = NEWEST.get_or_init(|| MariaDb::newest_mysql(&[])).await.as_ref();
    [Some(MariaDb::shared().await), newest].into_iter().flatten().collect()
}

/// The same, with a binary log.
pub(super) async fn servers_with_a_binary_log() -> Vec<&'static MariaDb> {
    const OPTIONS: [&str; 2] = ["--log-bin=binlog", "--server-id=1"];
    static SERVERS: OnceCell<[Option<MariaDb>; 2]> = OnceCell::const_new();
    let start =
        async || [Some(MariaDb::with(&OPTIONS).await), MariaDb::newest_mysql(&OPTIONS).await];
    SERVERS.get_or_init(start).await.iter().flatten().collect()
}

/// A database with the table `stock`, which has one row.
pub(super) struct Shop {
    pub(super) url: String,
    pub(super) conn: Conn,
}

impl Shop {
    pub(super) async fn unfenced(server: &'static MariaDb) -> Self {
        let name = server.database().await;
        let (url, mut conn) = (server.url_of(&name), server.cli(&name).await);
        conn.query_drop("CREATE TABLE stock (id INT PRIMARY KEY, quantity INT NOT NULL)")
            .await
            .unwrap();
        conn.query_drop("INSERT INTO stock VALUES (42, 100)").await.unwrap();
        Self { url, conn }
    }

    /// The same, and the table refuses late writes.
    pub(super) async fn new(server: &'static MariaDb) -> Self {
        let shop = Self::unfenced(server).await;
        shop.migrate(&["--table", "stock"]).await;
        shop
    }

    pub(super) fn database(&self) -> String {
        Url::parse(&self.url).unwrap().path()[1..].to_owned()
    }

    /// The arguments of the clients `mariadb` and `mysql` for this database.
    pub(super) fn arguments(&self) -> Vec<String> {
        let url = Url::parse(&self.url).unwrap();
        let arguments = [
            "--no-defaults".to_owned(),
            "--host=127.0.0.1".to_owned(),
            // Such a client would read the end of a name in another way.
            "--default-character-set=gbk".to_owned(),
            format!("--port={}", url.port().expect("a port")),
            format!("--user={}", url.username()),
            format!("--password={}", url.password().expect("a password")),
            self.database(),
        ];
        arguments.into()
    }

    /// Applies the migration as its help says.
    pub(super) async fn migrate(&self, words: &[&str]) {
        let (succeeded, output) = self.try_migrate(words).await;
        assert!(succeeded, "{words:?}\n{output}");
    }

    /// The same. Returns whether it succeeded, and the client's output.
    pub(super) async fn try_migrate(&self, words: &[&str]) -> (bool, String) {
        let migration = printed(&[&["--engine", "mysql"], words].concat()).await;
        let arguments = self.arguments();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        client("mariadb", &arguments, &migration)
    }

    /// Runs a statement in a transaction with this token, or none. Returns the SQLSTATE if it is
    /// refused.
    pub(super) async fn write(
        &mut self,
        token: Option<u64>,
        statement: &str,
    ) -> Result<(), String> {
        self.conn.query_drop("BEGIN").await.unwrap();
        if let Some(token) = token {
            let set = format!(
                "INSERT INTO lockattr_fence_tokens (token) VALUES ({token}); \
                 SET @lockattr_fence = LAST_INSERT_ID()"
            );
            self.conn.query_drop(set).await.unwrap();
        }
        let outcome = self.conn.query_drop(statement).await;
        if token.is_some() {
            let unset = "DELETE FROM lockattr_fence_tokens WHERE id = @lockattr_fence";
            self.conn.query_drop(unset).await.unwrap();
        }
        let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.conn.query_drop(end).await.unwrap();
        outcome.map_err(|error| state(&error))
    }

    /// The quantity and the token of a row, if it exists.
    pub(super) async fn row(&mut self, id: i32) -> Option<(i32, i64)> {
        let select = format!("SELECT quantity, fence FROM stock WHERE id = {id}");
        self.conn.query_first(select).await.unwrap()
    }

    pub(super) async fn number(&mut self, query: &str) -> i64 {
        self.conn.query_first(query).await.unwrap().expect("a row")
    }
}

pub(super) fn state(error: &Error) -> String {
    match error {
        Error::Server(error) => error.state.clone(),
        error => panic!("{error:?}"),
    }
}

pub(super) const SELL: &str = "UPDATE stock SET quantity = quantity - 1 WHERE id = 42";

#[tokio::test]
async fn a_row_accepts_equal_and_greater_tokens_and_no_smaller_one() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        assert_eq!(shop.row(42).await, Some((100, 0)), "a row from before the migration");
        assert_eq!(shop.write(None, SELL).await, Err(UNFENCED.into()));
        shop.write(Some(5), SELL).await.unwrap();
        shop.write(Some(5), SELL).await.unwrap();
        assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));
        // A statement cannot choose another token, nor ignore the refusal.
        let forged = "UPDATE stock SET quantity = 0, fence = 9 WHERE id = 42";
        assert_eq!(shop.write(Some(4), forged).await, Err(FENCED_OFF.into()));
        let ignores = "UPDATE IGNORE stock SET quantity = 0 WHERE id = 42";
        assert_eq!(shop.write(Some(4), ignores).await, Err(FENCED_OFF.into()));
        assert_eq!(shop.row(42).await, Some((98, 5)));
        // One too old among many refuses all of them.
        shop.write(Some(3), "INSERT INTO stock (id, quantity) VALUES (1, 1)").await.unwrap();
        let all = shop.write(Some(4), "UPDATE stock SET quantity = 7").await;
        assert_eq!(all, Err(FENCED_OFF.into()));
        assert_eq!(shop.row(1).await, Some((1, 3)));
        shop.write(Some(i64::MAX.cast_unsigned()), forged).await.unwrap();
        assert_eq!(shop.row(42).await, Some((0, i64::MAX)));
        assert_eq!(shop.number("SELECT COUNT(*) FROM lockattr_fence_tokens").await, 0);
    }
}

#[tokio::test]
async fn inserts_upserts_replacements_and_deletes_are_writes_too() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        let insert = "INSERT INTO stock (id, quantity) VALUES (1, 1)";
        assert_eq!(shop.write(None, insert).await, Err(UNFENCED.into()));
        let ignores = "INSERT IGNORE INTO stock (id, quantity) VALUES (1, 1)";
        assert_eq!(shop.write(None, ignores).await, Err(UNFENCED.into()));
        shop.write(Some(5), "INSERT INTO stock VALUES (1, 1)").await.unwrap();
        assert_eq!(shop.row(1).await, Some((1, 5)), "without a list of columns, as before");

        for (upsert, token) in [
            (
                "INSERT INTO stock (id, quantity) VALUES (1, 2) ON DUPLICATE KEY UPDATE quantity = 2",
                6,
            ),
            ("REPLACE INTO stock (id, quantity) VALUES (1, 2)", 7),
        ] {
            let before = shop.row(1).await;
            assert_eq!(shop.write(None, upsert).await, Err(UNFENCED.into()));
            assert_eq!(shop.write(Some(4), upsert).await, Err(FENCED_OFF.into()), "{upsert}");
            assert_eq!(shop.row(1).await, before);
            shop.write(Some(token), upsert).await.unwrap();
            assert_eq!(shop.row(1).await, Some((2, token.cast_signed())));
        }

        let delete = "DELETE FROM stock WHERE id = 1";
        assert_eq!(shop.write(None, delete).await, Err(UNFENCED.into()));
        assert_eq!(shop.write(Some(6), delete).await, Err(FENCED_OFF.into()));
        assert_eq!(shop.row(1).await, Some((2, 7)));
        shop.write(Some(7), delete).await.unwrap();
        assert_eq!(shop.row(1).await, None);
    }
}

#[tokio::test]
async fn an_error_names_the_table_and_both_tokens() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        shop.write(Some(91_234), SELL).await.unwrap();
        let set = "BEGIN; INSERT INTO lockattr_fence_tokens (token) VALUES (91233); \
                   SET @lockattr_fence = LAST_INSERT_ID()";
        shop.conn.query_drop(set).await.unwrap();
        let refused = shop.conn.query_drop(SELL).await.unwrap_err().to_string();
        let expected = "fencing token 91233 is too old: 91234 has written this row of stock";
        assert!(refused.contains(expected), "{refused}");
        shop.conn.query_drop("ROLLBACK").await.unwrap();
        let refused = shop.conn.query_drop(SELL).await.unwrap_err().to_string();
        assert!(refused.contains("no fencing token for a write to table stock"), "{refused}");
    }
}

/// Code that compares tokens in its statements continues to work.
#[tokio::test]
async fn with_allow_unfenced_a_write_without_a_token_leaves_the_column() {
    for server in servers().await {
        let mut shop = Shop::unfenced(server).await;
        shop.migrate(&["--table", "stock", "--allow-unfenced"]).await;
        shop.write(Some(5), SELL).await.unwrap();
        shop.write(None, SELL).await.unwrap();
        assert_eq!(shop.row(42).await, Some((98, 5)));
        assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));
        let compares = |token| {
            format!(
                "UPDATE stock SET quantity = {token}, fence = {token} \
                 WHERE id = 42 AND fence < {token}"
            )
        };
        shop.write(None, &compares(7)).await.unwrap();
        shop.write(None, &compares(6)).await.unwrap();
        assert_eq!(shop.row(42).await, Some((7, 7)));
        let lower = shop.write(None, "UPDATE stock SET fence = 6").await;
        assert_eq!(lower, Err(FENCED_OFF.into()));
        shop.write(None, "INSERT INTO stock (id, quantity) VALUES (1, 1)").await.unwrap();
        assert_eq!(shop.row(1).await, Some((1, 0)));
        assert_eq!(shop.write(Some(6), "DELETE FROM stock").await, Err(FENCED_OFF.into()));
        shop.write(None, "DELETE FROM stock").await.unwrap();
        assert_eq!(shop.row(42).await, None);
    }
}

#[tokio::test]
async fn the_migration_can_run_twice_and_be_undone_twice() {
    const LEFT: &str = "SELECT (SELECT COUNT(*) FROM information_schema.triggers \
                        WHERE trigger_schema = DATABASE()) \
                        + (SELECT COUNT(*) FROM information_schema.columns \
                        WHERE table_schema = DATABASE() AND column_name IN ('fence', 'token'))";
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        shop.write(Some(5), SELL).await.unwrap();
        shop.migrate(&["--table", "stock"]).await;
        assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));
        assert_eq!(shop.row(42).await, Some((99, 5)), "the tokens are kept");
        // As a tool does that sends the file as it is, over a connection that continues.
        let words = ["--engine", "mysql", "--table", "stock", "--no-delimiter"];
        let mode: Option<String> = shop.conn.query_first("SELECT @@sql_mode").await.unwrap();
        shop.conn.query_drop(printed(&words).await).await.unwrap();
        let after: Option<String> = shop.conn.query_first("SELECT @@sql_mode").await.unwrap();
        assert_eq!(after, mode);
        assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));

        // The tokens stay as long as a table needs them.
        shop.conn.query_drop("CREATE TABLE other (id INT)").await.unwrap();
        shop.migrate(&["--table", "other"]).await;
        for _ in 0..2 {
            shop.migrate(&["--table", "stock", "--down"]).await;
            shop.write(None, SELL).await.unwrap();
            shop.write(Some(4), "INSERT INTO other (id) VALUES (1)").await.unwrap();
        }
        assert_ne!(shop.number(LEFT).await, 0);
        for _ in 0..2 {
            shop.migrate(&["--table", "other", "--down"]).await;
            assert_eq!(shop.number(LEFT).await, 0);
        }
    }
}

#[tokio::test]
async fn any_name_of_a_table_is_only_a_name() {
    for server in servers().await {
        let mut shop = Shop::unfenced(server).await;
        let database = shop.database();
        let long = "long".repeat(16);
        // MySQL 9.7 fails to store a trigger with a backtick and a Chinese letter in one name.
        for (name, column) in [
            ("select", "the `fence` of it's ;;"),
            ("a\"b'c;d`e", "fence 小"),
            ("x`; drop table stock; --", "x`; drop table stock; --"),
            ("stock.of.münchen小", "小"),
            (&long, "fence"),
        ] {
            let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
            let table = format!("{}.{}", quoted(&database), quoted(name));
            shop.conn.query_drop(format!("CREATE TABLE {table} (id INT)")).await.unwrap();
            let words = ["--table", &table, "--column", column, "--name", "it's `the` name"];
            shop.migrate(&words).await;
            shop.migrate(&words).await;
            let insert = format!("INSERT INTO {table} (id) VALUES (1)");
            let update = format!("UPDATE {table} SET id = id + 1");
            assert_eq!(shop.write(None, &insert).await, Err(UNFENCED.into()), "{table}");
            shop.write(Some(i64::MAX.cast_unsigned()), &insert).await.unwrap();
            let refused = shop.write(Some(i64::MAX.cast_unsigned() - 1), &update).await;
            assert_eq!(refused, Err(FENCED_OFF.into()), "{table}");
            assert_eq!(
                shop.number(&format!("SELECT {} FROM {table}", quoted(column))).await,
                i64::MAX
            );
            shop.migrate(&[&words[..], &["--down"]].concat()).await;
            shop.write(None, &update).await.unwrap();
        }
        assert_eq!(shop.number("SELECT COUNT(*) FROM stock").await, 1, "`stock` is as it was");
    }
}

/// Red without: the comparison in the triggers.
#[tokio::test]
async fn the_late_write_of_a_holder_that_was_stopped_is_refused() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        let client: Vec<_> = shop.arguments().iter().map(|word| format!("'{word}'")).collect();
        let write = format!(
            "mariadb {} 2>&1 -e \"BEGIN; \
             INSERT INTO lockattr_fence_tokens (token) VALUES ($LOCKATTR_FENCING_TOKEN); \
             SET @lockattr_fence = LAST_INSERT_ID(); UPDATE stock SET quantity = 97; \
             DELETE FROM lockattr_fence_tokens WHERE id = @lockattr_fence; COMMIT\"",
            client.join(" ")
        );
        let mut holders = Overtaken::new(&shop.url.clone(), &write).await;
        let next = holders.next;
        shop.write(Some(next.get()), "UPDATE stock SET quantity = 95").await.unwrap();
        let (text, code) = holders.write_late().await;
        assert!(text.contains("LKF01") && code != "0", "{code}: {text}");
        assert_eq!(shop.row(42).await, Some((95, next.into())));
    }
}
