//! One MariaDB server for all tests, because it takes half a second to start. Each test has a
//! database of its own.

use lockattr::store::MysqlStore;
use lockattr_tests::{MariaDb, eventually, for_store, with_query};
use mysql_async::Error;
use mysql_async::prelude::Queryable;

use super::{AnyStore, Fleet};

const NO_SUCH_TABLE: u16 = 1146;

pub(in crate::store_contract) struct OnMysql {
    pub(super) server: &'static MariaDb,
    pub(super) database: String,
}

impl OnMysql {
    /// Opens a store with these settings.
    pub(super) fn node_with(&self, settings: &str) -> AnyStore {
        let url = self.server.url_of(&self.database);
        let url = if settings.is_empty() { url } else { with_query(&url, settings) };
        AnyStore::new(MysqlStore::open(&for_store(&url)).expect("a good URL"))
    }
}

impl Fleet for OnMysql {
    async fn start() -> Self {
        let server = MariaDb::shared().await;
        let database = server.database().await;
        Self { server, database }
    }

    fn node(&self) -> AnyStore {
        self.node_with("")
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        let subscribers = format!(
            "SELECT COUNT(*) FROM lockattr_v2_queue WHERE token LIKE '{subscriber:016x}%' \
             AND IS_USED_LOCK(CONCAT('lockattr:', listener)) IS NOT NULL"
        );
        let gone = async || self.server.query::<i64>(&self.database, &subscribers).await == [0];
        eventually("its connection is closed", gone).await;
    }

    /// Checks that the counts of waiters and holders match their rows, and that no row is left for
    /// a lock that is neither held nor waited for.
    async fn finish(&self) {
        let wrong = "SELECT CONCAT(k.name, ' ', k.waiting, ' ', (SELECT COUNT(*) FROM lockattr_v2_queue l \
                     WHERE l.id = k.id), ' ', k.holders) FROM lockattr_v2_locks k WHERE k.seat = '' AND \
                     (k.waiting <> (SELECT COUNT(*) FROM lockattr_v2_queue l WHERE l.id = k.id) OR \
                     (k.mode = '-' AND k.waiting = 0) OR (k.mode IN ('s', 'p') AND k.holders <> \
                     (SELECT COUNT(*) FROM lockattr_v2_locks s WHERE s.id = k.id AND s.seat <> '')))";
        let mut cli = self.server.cli(&self.database).await;
        let wrong = match cli.query::<String, _>(wrong).await {
            // The test sent no request.
            Err(Error::Server(error)) if error.code == NO_SUCH_TABLE => return,
            wrong => wrong.expect("an answer"),
        };
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
