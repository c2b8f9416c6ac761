//! MariaDB where locks belong to connections.

use lockattr::store::MysqlStore;
use lockattr_tests::MariaDb;

use super::{AnyStore, Fleet, set_key_prefix};

pub(in crate::store_contract) struct OnMysqlSessions {
    server: &'static MariaDb,
    database: String,
}

impl Fleet for OnMysqlSessions {
    async fn start() -> Self {
        set_key_prefix("");
        let server = MariaDb::shared().await;
        let database = server.database().await;
        Self { server, database }
    }

    fn node(&self) -> AnyStore {
        let url = self.server.url_of(&self.database);
        let url = format!("{url}?lock=session&connect_timeout=10s&response_timeout=10s");
        AnyStore::new(MysqlStore::open(&url).expect("a good URL"))
    }

    async fn wait_until_gone(&self, _inbox: u64) {}

    /// A session lock leaves no row. This checks that no table of the other lock form was used.
    async fn saw_nothing_wrong(&self) {
        let left = self.server.left_in(&self.database).await;
        assert!(left.is_empty(), "{left:?}");
    }
}
