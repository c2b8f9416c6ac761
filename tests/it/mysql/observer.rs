//! One connection that looks at the server: who is connected, and which session locks are free.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::Database;

/// One connection that looks at the server.
pub(super) struct Observer {
    connection: Conn,
    database: String,
}

impl Observer {
    pub(super) async fn of(database: &Database) -> Self {
        let connection = database.server.cli(&database.name).await;
        Self { connection, database: database.name.clone() }
    }

    /// Counts the other connections to the test's database. MySQL's table of them fails while a
    /// statement has bytes that are no text.
    pub(super) async fn connections(&mut self) -> usize {
        let all: Vec<Row> = self.connection.query("SHOW PROCESSLIST").await.unwrap();
        let own = self.connection.id();
        let is_other = |row: &&Row| {
            row.get::<Option<String>, _>("db").flatten().as_ref() == Some(&self.database)
                && row.get::<u32, _>("Id") != Some(own)
        };
        all.iter().filter(is_other).count()
    }

    pub(super) async fn is_free(&mut self, key: &str) -> bool {
        let free = format!(
            "SELECT IS_FREE_LOCK(CONCAT('lockattr:lock:', \
             LEFT(SHA2(CONCAT(DATABASE(), '/', 'lock:{key}'), 256), 50)))"
        );
        self.connection.query_first(free).await.unwrap() == Some(1)
    }
}
