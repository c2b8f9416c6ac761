//! A migration of MySQL and MariaDB that is refused, or stopped, leaves the table guarded.

use lockattr::fence::{FENCED_OFF, UNFENCED};
use mysql_async::prelude::Queryable;
use url::Url;

use super::mysql::{SELL, Shop, servers, servers_with_a_binary_log, state};
use super::{client, printed};
use lockattr_tests::bare;

/// Each statement of the migration, as a client sends them.
async fn statements(words: &[&str]) -> Vec<String> {
    let printed = printed(&[&["--engine", "mysql"], words].concat()).await;
    let (_, statements) = printed.split_once("DELIMITER ;;\n").expect("a line with the delimiter");
    let statements = statements.strip_suffix("DELIMITER ;\n").expect("the usual delimiter");
    statements.split_terminator(";;\n").map(str::to_owned).collect()
}

/// The names of the triggers in the database.
async fn triggers(shop: &mut Shop) -> Vec<String> {
    let select = "SELECT trigger_name FROM information_schema.triggers \
                  WHERE trigger_schema = DATABASE() ORDER BY trigger_name";
    shop.conn.query(select).await.unwrap()
}

/// Red without: the trigger that stands in while another one is replaced.
#[tokio::test]
async fn a_migration_that_stops_after_any_statement_leaves_the_table_guarded() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        let names = triggers(&mut shop).await;
        shop.write(Some(5), SELL).await.unwrap();
        let statements = statements(&["--table", "stock"]).await;
        assert!(statements.len() > 12, "{statements:?}");
        for stop in 1..=statements.len() {
            let mut stopped = server.cli(&shop.database()).await;
            for statement in &statements[..stop] {
                stopped.query_drop(statement).await.unwrap();
            }
            stopped.disconnect().await.unwrap();
            let last = &statements[stop - 1];
            for write in [SELL, "DELETE FROM stock WHERE id = 42"] {
                assert_eq!(shop.write(Some(4), write).await, Err(FENCED_OFF.into()), "{last}");
                assert_eq!(shop.write(None, write).await, Err(UNFENCED.into()), "{last}");
            }
            let insert = "INSERT INTO stock (id, quantity) VALUES (1, 1)";
            assert_eq!(shop.write(None, insert).await, Err(UNFENCED.into()), "{last}");
        }
        assert_eq!(triggers(&mut shop).await, names, "what stood in is gone");
        assert_eq!(shop.row(42).await, Some((99, 5)));
    }
}

/// MySQL refuses the triggers of a user without SUPER if it writes a binary log (error 1419).
///
/// Red without: the trigger that is made before the old one is dropped.
#[tokio::test]
async fn a_user_who_may_not_make_triggers_takes_none_away() {
    for server in servers_with_a_binary_log().await {
        let mut shop = Shop::new(server).await;
        shop.write(Some(5), SELL).await.unwrap();
        let (database, names) = (shop.database(), triggers(&mut shop).await);
        let user = format!("owner_{database}");
        for statement in [
            format!("CREATE USER {user}@'%' IDENTIFIED BY 's3cret'"),
            format!("GRANT ALL ON {database}.* TO {user}@'%'"),
        ] {
            shop.conn.query_drop(statement).await.unwrap();
        }
        let mut url = Url::parse(&bare(&shop.url)).unwrap();
        url.set_username(&user).unwrap();
        let mut owner = mysql_async::Conn::from_url(url.as_str()).await.unwrap();
        let words = ["--engine", "mysql", "--table", "stock", "--no-delimiter"];
        let refused = owner.query_drop(printed(&words).await).await.unwrap_err();
        assert!(refused.to_string().contains("1419"), "{refused}");
        owner.disconnect().await.unwrap();
        assert_eq!(triggers(&mut shop).await, names);
        assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));
        let insert = "INSERT INTO stock (id, quantity) VALUES (1, 1)";
        assert_eq!(shop.write(None, insert).await, Err(UNFENCED.into()));
    }
}

/// MariaDB drops the triggers. MySQL can drop none whose name is not part of the text, so there the
/// migration names them, and takes nothing away.
#[tokio::test]
async fn the_triggers_of_a_renamed_table_are_found_by_what_they_do() {
    for server in servers().await {
        let mut shop = Shop::unfenced(server).await;
        shop.migrate(&["--table", "stock", "--name", "odd `name`"]).await;
        shop.conn.query_drop("RENAME TABLE stock TO goods").await.unwrap();
        let version: Option<String> = shop.conn.query_first("SELECT VERSION()").await.unwrap();
        let mariadb = version.is_some_and(|version| version.contains("MariaDB"));
        let (succeeded, output) = shop.try_migrate(&["--table", "goods", "--down"]).await;
        assert_eq!(succeeded, mariadb, "{output}");
        if !mariadb {
            assert_eq!(triggers(&mut shop).await.len(), 3);
            let column = "SELECT COUNT(fence) FROM goods";
            assert_eq!(shop.number(column).await, 1, "the triggers need the column");
            for event in ["insert", "update", "delete"] {
                let drop = format!("DROP TRIGGER `odd ``name``_{event}`");
                assert!(output.contains(&format!("{drop};\n")), "{output}");
                shop.conn.query_drop(drop).await.unwrap();
            }
            shop.migrate(&["--table", "goods", "--down"]).await;
        }
        assert!(triggers(&mut shop).await.is_empty());
        shop.write_plainly("INSERT INTO goods VALUES (1, 1)").await;
    }
}

/// Red without: the comparison with the other tables' triggers.
#[tokio::test]
async fn a_table_does_not_lose_its_triggers_to_another_one_with_their_name() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        shop.write(Some(5), SELL).await.unwrap();
        shop.conn.query_drop("CREATE TABLE other (id INT)").await.unwrap();
        for down in [false, true] {
            let mut words = vec!["--table", "other", "--name", "lockattr_fence_stock"];
            words.extend(down.then_some("--down"));
            let (succeeded, output) = shop.try_migrate(&words).await;
            assert!(!succeeded && output.contains("another name with --name"), "{output}");
            assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));
            shop.write_plainly("INSERT INTO other VALUES (1)").await;
        }
    }
}

/// A text would be compared as one, and an `INT` is too small for a token.
#[tokio::test]
async fn a_column_that_cannot_keep_a_token_is_refused_with_a_sentence() {
    for server in servers().await {
        let mut shop = Shop::unfenced(server).await;
        for column in ["fence INT", "fence TEXT", "fence BIGINT AS (id)"] {
            let create =
                format!("DROP TABLE IF EXISTS other; CREATE TABLE other (id INT, {column})");
            shop.conn.query_drop(create).await.unwrap();
            let (succeeded, output) = shop.try_migrate(&["--table", "other"]).await;
            let sentence = "the column fence is no plain bigint as a token needs";
            assert!(!succeeded && output.contains(sentence), "{column}: {output}");
            shop.write_plainly("INSERT INTO other (id) VALUES (1)").await;
        }
        shop.migrate(&["--table", "stock"]).await;
        let (succeeded, output) =
            shop.try_migrate(&["--table", "stock", "--column", "second"]).await;
        assert!(!succeeded && output.contains("another column than second"), "{output}");
    }
}

/// It would make all later statements wait behind it, for a year in MySQL.
#[tokio::test]
async fn a_migration_does_not_wait_long_for_a_transaction_that_has_the_table() {
    for server in servers().await {
        let mut shop = Shop::new(server).await;
        shop.write(Some(5), SELL).await.unwrap();
        shop.conn.query_drop("BEGIN; SELECT * FROM stock").await.unwrap();
        let mut other = server.cli(&shop.database()).await;
        let words = ["--engine", "mysql", "--table", "stock", "--no-delimiter"];
        let refused = other.query_drop(printed(&words).await).await.unwrap_err();
        assert!(refused.to_string().contains("1205"), "{refused}");
        assert_eq!(state(&refused), "HY000");
        shop.conn.query_drop("ROLLBACK").await.unwrap();
        assert_eq!(shop.write(Some(4), SELL).await, Err(FENCED_OFF.into()));
    }
}

impl Shop {
    /// Writes as code that knows nothing of tokens, with the client.
    async fn write_plainly(&self, statement: &str) {
        let arguments = self.arguments();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let (succeeded, output) = client("mariadb", &arguments, statement);
        assert!(succeeded, "{statement}: {output}");
    }
}
